#ifndef MEMRT_ALLOC_MAPPED_H
#define MEMRT_ALLOC_MAPPED_H

#include <memrt/allocator.h>

#include "runtime/config/options.h"
#include "runtime/os/os.h"

/// Mappings for large blocks, with huge pages.
///
/// The first page of a block holds the header; the data begins on the next page. The header thus
/// lies on its own page before the first huge page. Writing the header of an otherwise unused block
/// does not bring in 2 MiB.

/// Mapping size from which the mode `large` uses huge pages: two huge pages. The mode `advise` uses
/// huge pages for each mapping above one huge page.
#define MEMRT__HUGE_FROM (2 * MEMRT__HUGE_PAGE)

/// Return the huge page mode `chosen`, or the mode of the process for MEMRT__INHERIT.
memrt__huge_t memrt__huge_of(size_t chosen);

/// Map whole pages at a multiple of `align`. If `huge` asks for huge pages at this size, the kernel
/// is advised to use them. The first huge page then begins at the second page for an `align` of one
/// page, and at the start for a larger `align`. Failure: returns NULL when out of memory.
void *memrt__mapped_new(size_t bytes, size_t align, memrt__huge_t huge);

/// Unmap memory. If the system refuses, its pages are free, and the addresses are lost.
void memrt__mapped_delete(void *mapping, size_t bytes);

/// Advise huge pages for a mapping if `huge` asks for huge pages at its size.
void memrt__mapped_advise(void *mapping, size_t bytes, memrt__huge_t huge);

/// Advise huge pages, or no huge pages, for a mapping that may have other advice.
void memrt__mapped_advise_anew(void *mapping, size_t bytes, memrt__huge_t huge);

/// Return the mapped allocator with a fixed huge page mode, or with the mode of the process for
/// MEMRT__INHERIT.
const memrt_allocator_t *memrt__mapped_with(size_t huge_pages);

#endif
