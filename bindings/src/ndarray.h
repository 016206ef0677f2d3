#ifndef MEMRT_NDARRAY_H
#define MEMRT_NDARRAY_H

/// NumPy's C API with one table of functions for the whole extension; module.c fills it in.

#include "binding.h"

#define PY_ARRAY_UNIQUE_SYMBOL memrt__numpy_functions
#ifndef MEMRT_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include <memrt/numpy.h>

#endif
