#ifndef MEMRT_TRACE_H
#define MEMRT_TRACE_H

#include "binding.h"

/// Show the data of a new `mi` in tracemalloc, in NumPy's domain, until it dies. Nothing when
/// tracemalloc is off. -1 with MemoryError when tracemalloc has no room for it.
int memrt__trace_birth(memrt_meminfo_t *mi);

/// The same for memory of compiled code, which may run without the GIL: then the memory is not
/// shown, since tracemalloc would wait for the GIL. Returns 0, without an exception, when there is
/// no room.
int memrt__trace_compiled(memrt_meminfo_t *mi);

#endif
