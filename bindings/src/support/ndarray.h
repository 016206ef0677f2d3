#ifndef MEMRT_BINDINGS_SUPPORT_NDARRAY_H
#define MEMRT_BINDINGS_SUPPORT_NDARRAY_H

/// Include NumPy's C API with one function table for the whole extension. module.c fills in the
/// table.

#include "support/binding.h"

#define PY_ARRAY_UNIQUE_SYMBOL memrt__numpy_functions
#ifndef MEMRT_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include <memrt/numpy.h>

#endif
