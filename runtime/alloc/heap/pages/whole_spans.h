#ifndef MEMRT_ALLOC_HEAP_PAGES_WHOLE_SPANS_H
#define MEMRT_ALLOC_HEAP_PAGES_WHOLE_SPANS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/alloc/heap/pages/segment.h"
#include "runtime/alloc/heap/span.h"

/// Freed long spans, kept whole for the next request of the same length. The bitmap of used units
/// of the segment shows the units as used, but memrt__page_counts.dirty_free counts the units.
/// Under the lock of rank PAGE_HEAP.

/// Minimum units of a long span. The span of a medium block is long, and is often freed and
/// requested again.
#define MEMRT__WHOLE_SPAN_MIN 9u

/// Clear the units of a freed span in the bitmaps, so that spans of any length can take the units.
void memrt__span_dissolve(memrt__span_t *span);

/// Shorten a span to its first `units` units. Spans of any length can take the other units.
void memrt__span_shorten(memrt__span_t *span, size_t units);

/// Take the span of `units` units that was freed last, or return NULL.
memrt__span_t *memrt__whole_spans_pop(size_t units);

/// Keep a freed span whole.
void memrt__whole_spans_push(memrt__span_t *span);

/// Dissolve whole spans until a segment may have a run of `units` dirty free units, starting with
/// spans of at least `units` units. Stops after a fixed number of spans.
void memrt__whole_spans_make_run(size_t units);

/// Dissolve the whole spans of a segment.
void memrt__whole_spans_dissolve(memrt__segment_t *segment);

#if MEMRT_DEBUG
/// Return whether the lists of whole spans are valid, and contain all whole spans of all segments.
/// `marked` is the number of units that start a whole span. `*units` is the sum of their units.
bool memrt__whole_spans_are_valid(size_t marked, size_t *units);
#endif

#endif
