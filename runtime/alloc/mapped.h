#ifndef MEMRT_ALLOC_MAPPED_H
#define MEMRT_ALLOC_MAPPED_H

#include <memrt/allocator.h>

#include "runtime/base/options.h"
#include "runtime/base/os.h"

/// Mappings for large blocks, with huge pages.
///
/// The first page of a block holds its header, the data begins on the next. So the header lies on a
/// page of its own before the first huge page: to write the header of a block that nobody looks
/// into does not bring in 2 MiB.

/// Mappings from here on are large enough for huge pages in every mode but `off`: two at least.
#define MEMRT__HUGE_FROM (2 * MEMRT__HUGE_PAGE)

/// What is meant by MEMRT__INHERIT: the mode of the process.
memrt__huge_t memrt__huge_of(size_t chosen);

/// New mapping of whole pages at a multiple of `align`, placed and advised as `huge` has it. NULL:
/// out of memory.
void *memrt__mapped_new(size_t bytes, size_t align, memrt__huge_t huge);

/// Advise huge pages for a mapping that is to have them.
void memrt__mapped_advise(void *mapping, size_t bytes, memrt__huge_t huge);

/// The same for one that may have been advised otherwise: also that it is not to have them.
void memrt__mapped_advise_anew(void *mapping, size_t bytes, memrt__huge_t huge);

/// The mapped allocator with a mode of its own, or MEMRT__INHERIT.
const memrt_allocator_t *memrt__mapped_with(size_t huge_pages);

#endif
