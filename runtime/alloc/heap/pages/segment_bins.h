#ifndef MEMRT_ALLOC_HEAP_PAGES_SEGMENT_BINS_H
#define MEMRT_ALLOC_HEAP_PAGES_SEGMENT_BINS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/alloc/heap/pages/segment.h"

/// Bins of segments by the length of the longest free run, and by the length of the longest dirty
/// free run. A search looks only at segments that probably have a run of sufficient length.
///
/// The bin of a segment is an upper bound. A return of units raises the bound to the exact length.
/// A take leaves the bound as is. A failed look corrects the bound. Each failed look therefore
/// follows an earlier take, and the mean number of looks per take is constant.
///
/// Under the lock of rank PAGE_HEAP.

/// Add a segment to its bins, remove a segment from its bins, and restore the segment removed last
/// to its old place.
void memrt__segment_bins_add(memrt__segment_t *segment);
void memrt__segment_bins_remove(memrt__segment_t *segment);
void memrt__segment_bins_restore(memrt__segment_t *segment);

/// Raise the bounds of a segment to the free runs that contain `unit`, a free unit.
void memrt__segment_bins_raise(memrt__segment_t *segment, size_t unit);

/// Set the bound for dirty free runs to the length of the longest run.
void memrt__segment_bins_correct_dirty(memrt__segment_t *segment);

/// Return whether a segment may have a run of `units` dirty free units.
bool memrt__segment_bins_may_have_dirty(size_t units);

/// Return a segment with a run of `units` free units, in any units or only in dirty units. `*first`
/// is the first unit of the run. Segments with the smallest sufficient bound come first. Failure:
/// returns NULL.
memrt__segment_t *memrt__segment_bins_find_free(size_t units, size_t *first);
memrt__segment_t *memrt__segment_bins_find_dirty(size_t units, size_t *first);

#if MEMRT_DEBUG
/// Number of looks at a segment by searches.
extern size_t memrt__segment_bins_looks;

/// Return whether all bins together contain `segments` segments, each in the bin of its bound.
bool memrt__segment_bins_are_valid(size_t segments);
#endif

#endif
