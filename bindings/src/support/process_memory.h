#ifndef MEMRT_BINDINGS_SUPPORT_PROCESS_MEMORY_H
#define MEMRT_BINDINGS_SUPPORT_PROCESS_MEMORY_H

#include "support/binding.h"

/// Parts of the memory of the process: mappings of memrt, the malloc of the C library, and segments
/// of programs and libraries. Only the trim changes memory.

/// Give free memory of the C library's malloc back to the system. No effect if another library
/// replaces malloc.
void memrt__trim_malloc(void);

/// Functions of the extension that list mappings of memrt, figures of malloc, and segments.
extern PyMethodDef memrt__process_memory_methods[];

#endif
