#ifndef MEMRT_BINDINGS_ALLOCATORS_PLACEMENT_H
#define MEMRT_BINDINGS_ALLOCATORS_PLACEMENT_H

#include "support/binding.h"

/// Placed allocators, and the place of memory.

extern PyMethodDef memrt__placement_methods[];

#endif
