#ifndef MEMRT_BINDINGS_TYPES_ARRAY_VIEW_H
#define MEMRT_BINDINGS_TYPES_ARRAY_VIEW_H

#include "support/binding.h"

/// Create NumPy arrays over the existing memory of a MemInfo: as_array(). The base of such an array
/// is the MemInfo object, and the array never owns its data.
extern PyMethodDef memrt__array_view_methods[];

#endif
