#ifndef MEMRT_ALLOC_HEAP_PAGES_SEGMENT_PURGE_H
#define MEMRT_ALLOC_HEAP_PAGES_SEGMENT_PURGE_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/alloc/heap/pages/segment.h"

/// Giving the free units of one segment back to the system. Under the lock of rank PAGE_HEAP.

/// Add a segment without free dirty units to the lists of segments. Then the page heap can search
/// and purge the segment.
void memrt__segment_link(memrt__segment_t *segment);

/// Unmap a segment, or discard its idle units, with `all` its dirty free units; returns units. All
/// units that stay dirty and free become idle. The segment may be gone afterwards. Whole free spans
/// of the segment are dissolved.
size_t memrt__segment_purge(memrt__segment_t *segment, bool all);

/// Add a segment to the list of segments with new dirty free units.
void memrt__segment_add_unpurged(memrt__segment_t *segment);

/// Note that a segment has new dirty free units, for memrt__segment_purge_above_budget().
static inline void memrt__segment_note_dirty(memrt__segment_t *segment)
{
    if (!segment->unpurged) {
        memrt__segment_add_unpurged(segment);
    }
}

/// Purge until units in spans plus dirty free units are within the high-water mark plus the
/// retention budget, or until only stuck units are left. Segments that got dirty free units first
/// go first. A segment whose units the system refused to take waits for new dirty units. Visits a
/// fixed number of segments at most.
void memrt__segment_purge_above_budget(void);

#if MEMRT_DEBUG
/// Number of calls of memrt__segment_purge().
extern size_t memrt__segment_purge_visits;

/// Return whether the list of segments with new dirty free units is valid.
bool memrt__segment_purge_is_valid(void);
#endif

#endif
