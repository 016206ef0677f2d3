#ifndef MEMRT_RETENTION_H
#define MEMRT_RETENTION_H

#include "binding.h"

extern PyMethodDef memrt__retention_methods[];

#endif
