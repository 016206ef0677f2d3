#ifndef MEMRT_ALLOC_HEAP_PAGES_PAGE_COUNTS_H
#define MEMRT_ALLOC_HEAP_PAGES_PAGE_COUNTS_H

#include <stddef.h>

#include "runtime/alloc/heap/pages/segment.h"
#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/base/size.h"
#include "runtime/os/lock.h"

/// Counts of units of the page heap. Written under the lock of rank PAGE_HEAP; all counts except
/// `most_in_spans` are also read without the lock.
typedef struct memrt__page_counts {
    size_t in_spans;      ///< in taken spans
    size_t dirty_free;    ///< cached: free, and possibly not zero; includes whole free spans
    size_t stuck;         ///< part of `dirty_free` that the system refused too often to take back
    size_t most_in_spans; ///< high-water mark of `in_spans`, restarted when nothing is cached
} memrt__page_counts_t;

extern memrt__page_counts_t memrt__page_counts;

/// Move free units to `in_spans`. `dirty` of the units were dirty and leave `dirty_free`.
static inline void memrt__page_counts_take(size_t units, size_t dirty)
{
    memrt__page_counts_t *counts = &memrt__page_counts;
    MEMRT__ASSERT_HELD(MEMRT__RANK_PAGE_HEAP);
    MEMRT__ASSERT(dirty <= counts->dirty_free && dirty <= units);
    memrt__own_add(&counts->dirty_free, (size_t)0 - dirty);
    memrt__own_add(&counts->in_spans, units);
    counts->most_in_spans = memrt__size_max(counts->most_in_spans, counts->in_spans);
}

/// Move the units of a span to `dirty_free`.
static inline void memrt__page_counts_give(size_t units)
{
    memrt__page_counts_t *counts = &memrt__page_counts;
    MEMRT__ASSERT_HELD(MEMRT__RANK_PAGE_HEAP);
    MEMRT__ASSERT(units <= counts->in_spans);
    memrt__own_add(&counts->in_spans, (size_t)0 - units);
    memrt__own_add(&counts->dirty_free, units);
}

/// Remove units that went back to the system from `dirty_free`.
void memrt__page_counts_purge(size_t units);

/// Add the change of a segment's stuck units to `stuck`. `before` is the result of
/// memrt__segment_stuck_units() before the change.
void memrt__page_counts_update_stuck(const memrt__segment_t *segment, size_t before);

/// Restart the high-water mark at current use, if no units are cached except stuck units.
void memrt__page_counts_restart_mark(void);

/// Return whether units in spans plus dirty free units are above the high-water mark plus the
/// retention budget, and some dirty free units are not stuck.
bool memrt__page_counts_are_above_budget(void);

#endif
