#ifndef MEMRT_CONTAINER_H
#define MEMRT_CONTAINER_H

#include "binding.h"

/// Where in a container an object is, without running code of what else is in it.
extern PyMethodDef memrt__container_methods[];

#endif
