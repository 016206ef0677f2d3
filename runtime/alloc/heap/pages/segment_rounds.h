#ifndef MEMRT_ALLOC_HEAP_PAGES_SEGMENT_ROUNDS_H
#define MEMRT_ALLOC_HEAP_PAGES_SEGMENT_ROUNDS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/alloc/heap/pages/segment.h"

/// Rounds over all segments, in steps of one segment. The lock may be released between two steps.
///
/// For each kind of round, the segments are in a queue in the order of their last visit. A step
/// takes the first segment, and puts the segment at the end. Under the lock of rank PAGE_HEAP.

/// Add a new segment at the end of all queues, as visited; remove a segment from all queues; add
/// the segment that was removed last at its old places.
void memrt__segment_rounds_add(memrt__segment_t *segment);
void memrt__segment_rounds_remove(memrt__segment_t *segment);
void memrt__segment_rounds_restore(memrt__segment_t *segment);

/// Start a round of any kind; returns its number.
size_t memrt__segment_rounds_start(void);

/// Visit the next segment that was last visited before the start of `round`, or return NULL.
/// Concurrent rounds of the same kind have different numbers, and one visit after the start of both
/// serves both. Segments added after the start of a round are not visited.
memrt__segment_t *memrt__segment_rounds_next(memrt__round_t kind, size_t round);

/// Return the first segment, and the segment after `segment`, in an arbitrary order of all
/// segments; NULL: there is none.
memrt__segment_t *memrt__segment_rounds_first(void);

static inline memrt__segment_t *memrt__segment_rounds_after(const memrt__segment_t *segment)
{
    return segment->links[memrt__links_of_round(MEMRT__ROUND_IDLE)].next;
}

#if MEMRT_DEBUG
/// Return whether all queues contain the same number of segments in the order of their visits. That
/// number is `*segments`.
bool memrt__segment_rounds_are_valid(size_t *segments);
#endif

#endif
