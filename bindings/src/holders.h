#ifndef MEMRT_HOLDERS_H
#define MEMRT_HOLDERS_H

#include "binding.h"

extern PyMethodDef memrt__holders_methods[];

#endif
