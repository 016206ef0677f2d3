#ifndef MEMRT_ALLOC_HEAP_PAGES_PAGE_HEAP_H
#define MEMRT_ALLOC_HEAP_PAGES_PAGE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/alloc/heap/pages/segment.h"
#include "runtime/alloc/heap/span.h"

/// Page heap: spans, runs of pages for blocks of one size class. Spans are cut from segments,
/// mappings of 4 MiB at a multiple of 4 MiB. Each segment begins with a table of its contents, so
/// any address in a span leads to the span.
///
/// A freed long span stays whole for the next request of the same length, until another span needs
/// its units.
///
/// Pages are counted in units of 8 KiB. A free unit is dirty from the first use until the unit goes
/// back to the system. A purge gives back the units that stayed free since the previous purge.
///
/// Invariant: dirty free units plus units in spans stay within the high-water mark of units in
/// spans, plus memrt__retention_budget().

/// Take a span of `units` units. Sets `*grew` if spans take pages that were not in memory. The
/// caller then calls memrt__large_cache_make_room() without a lock.
///
/// Failure: returns NULL when out of memory.
memrt__span_t *memrt__page_heap_take(size_t units, bool *grew);

/// Take up to `most` freed spans of `units` units whose pages are in memory, as a list linked by
/// `next`. NULL: there is none.
memrt__span_t *memrt__page_heap_take_whole(size_t units, size_t most);

/// Change the length of a span in place to `units` units, more or fewer. Sets `*grew` as
/// memrt__page_heap_take() does. Failure: returns false, with nothing changed, if units after the
/// span are in use.
bool memrt__page_heap_resize(memrt__span_t *span, size_t units, bool *grew);

/// Add a segment from detour.h, full of spans up to its free end, to the page heap. Under the
/// lock of rank PAGE_HEAP.
void memrt__page_heap_adopt(memrt__segment_t *segment);

/// Give the units of spans back for reuse: a list linked by `next`.
void memrt__page_heap_give(memrt__span_t *spans);

/// Return the span that contains `address`, an address in a block.
memrt__span_t *memrt__page_heap_span_of(const void *address);

/// Give the units that were free since the last call back to the system; with `all`, all free
/// units. Returns bytes. The lock is released between steps of bounded work. A slow fork ends the
/// purge early, and the next purge begins with the segments that this purge did not visit.
size_t memrt__page_heap_purge(bool all);

/// Purge in the same way, until `proceed`, called under the lock before each step, returns false.
size_t memrt__page_heap_purge_while(bool all, bool (*proceed)(void));

/// Purge all units that are free at the call, and wait for forks as necessary. Returns bytes.
size_t memrt__page_heap_release(void);

/// Let the next purge call the system again for segments whose pages the system refused to take.
/// Otherwise no call follows the first four failures of a segment.
void memrt__page_heap_retry(void);

/// Advise huge pages, or no huge pages, for all existing segments. New segments follow
/// MEMRT_HUGEPAGES.
void memrt__page_heap_advise(bool huge);

/// Return the dirty bytes outside of spans, and the bytes in spans. Both values may be out of date.
size_t memrt__page_heap_cached(void);
size_t memrt__page_heap_used(void);

/// Return the part of memrt__page_heap_cached() that a later purge gives back.
size_t memrt__page_heap_aging(void);

#if MEMRT_DEBUG
/// Return whether the invariants of the page heap and of all segments hold. Takes the lock of rank
/// PAGE_HEAP.
bool memrt__page_heap_is_valid(void);
#endif

#endif
