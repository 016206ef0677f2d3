#ifndef MEMRT_BINDINGS_TRACE_H
#define MEMRT_BINDINGS_TRACE_H

#include "binding.h"

#include <memrt/import.h>

/// memrt's memory in tracemalloc: shown by memrt_trace() of memrt/import.h, taken off where it
/// dies, moved where it is resized.

/// Have resizes and deaths told to tracemalloc. Once, before the first MemInfo is shown.
void memrt__trace_setup(void);

/// Show a new `mi` of compiled code, which may run without the GIL: then it is shown once it
/// reaches Python. Returns 0, without an exception, when there is no room.
int memrt__trace_compiled(memrt_meminfo_t *mi);

/// Show adopted memory that nobody else does, if there is room to.
void memrt__trace_adopted(memrt_meminfo_t *mi);

#endif
