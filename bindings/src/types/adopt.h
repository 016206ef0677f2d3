#ifndef MEMRT_BINDINGS_TYPES_ADOPT_H
#define MEMRT_BINDINGS_TYPES_ADOPT_H

#include "support/binding.h"

/// Adopt the memory of NumPy arrays that own their data, without moving the data and whichever
/// allocator made it.
extern PyMethodDef memrt__adoption_methods[];

#endif
