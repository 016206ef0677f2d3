#ifndef MEMRT_ALLOC_MAPPED_H
#define MEMRT_ALLOC_MAPPED_H

#include <stddef.h>

#include "runtime/base/os.h"

/// Mappings for large blocks, with huge pages.
///
/// The first page of a block holds its header, the data begins on the next. So the header lies on a
/// page of its own before the first huge page: to write the header of a block that nobody looks
/// into does not bring in 2 MiB.

/// Mappings from here on are placed and advised for huge pages: two of them at least.
#define MEMRT__HUGE_FROM (2 * MEMRT__HUGE_PAGE)

/// New mapping of whole pages at a multiple of `align`. NULL: out of memory.
void *memrt__mapped_new(size_t bytes, size_t align);

/// Advise huge pages for a mapping that is large enough, unless MEMRT_HUGEPAGES is off.
void memrt__mapped_advise(void *mapping, size_t bytes);

#endif
