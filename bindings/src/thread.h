#ifndef MEMRT_THREAD_H
#define MEMRT_THREAD_H

#include "binding.h"

/// What enable() needs to reach threads without showing up in their tracebacks.
extern PyMethodDef memrt__thread_methods[];

#endif
