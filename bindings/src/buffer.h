#ifndef MEMRT_BUFFER_H
#define MEMRT_BUFFER_H

#include "binding.h"

/// MemInfos made from Python: over new memory, and over memory that is there already.
extern PyMethodDef memrt__buffer_methods[];

#endif
