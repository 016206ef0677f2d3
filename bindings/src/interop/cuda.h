#ifndef MEMRT_BINDINGS_INTEROP_CUDA_H
#define MEMRT_BINDINGS_INTEROP_CUDA_H

#include "support/binding.h"

/// Expose the `cuda_` functions of the function table to memrt.cuda, whose Python docstrings
/// describe them. A memory is a number of memrt_memory_t, and a stream is a handle of the driver.
/// Driver calls may block, so the GIL is released during each of them.

extern PyMethodDef memrt__cuda_methods[];

#endif
