#ifndef MEMRT_BINDINGS_SUPPORT_PROCESS_MEMORY_H
#define MEMRT_BINDINGS_SUPPORT_PROCESS_MEMORY_H

#include "support/binding.h"

/// Return free memory of the C library's malloc to the system. No effect with another malloc.
void memrt__trim_malloc(void);

/// Expose the parts of a process's memory: mappings of memrt, malloc, programs and libraries.
extern PyMethodDef memrt__process_memory_methods[];

#endif
