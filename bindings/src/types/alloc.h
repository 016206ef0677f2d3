#ifndef MEMRT_BINDINGS_TYPES_ALLOC_H
#define MEMRT_BINDINGS_TYPES_ALLOC_H

#include "support/binding.h"

/// Create MemInfos from Python: alloc() over new memory, wrap() over existing memory.
extern PyMethodDef memrt__buffer_methods[];

#endif
