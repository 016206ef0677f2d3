#ifndef MEMRT_BINDINGS_TYPES_ARRAY_H
#define MEMRT_BINDINGS_TYPES_ARRAY_H

#include "support/binding.h"

/// Create NumPy arrays in new memory: empty() and zeros(). The base of such an array is the MemInfo
/// object, and the array never owns its data.
extern PyMethodDef memrt__array_methods[];

#endif
