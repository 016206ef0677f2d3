#include "runtime/alloc/heap/pages/whole_spans.h"

#include "runtime/alloc/heap/pages/page_counts.h"
#include "runtime/alloc/heap/pages/segment_bins.h"
#include "runtime/alloc/heap/pages/unit_bits.h"
#include "runtime/base/check.h"
#include "runtime/os/lock.h"

#define LENGTHS (MEMRT__SPAN_MAX / MEMRT__UNIT + 1)
_Static_assert(LENGTHS <= MEMRT__SEGMENT_UNITS, "a bitmap of units has a bit for each length");

static memrt__span_t *lists[LENGTHS]; /* by units; linked by `next`, and `prev` except the first */
static memrt__unit_bits_t filled;     /* all lists that are not empty, and possibly empty lists */

/// Maximum number of whole spans that one call dissolves under the lock.
#define DISSOLVED_MAX 1024

/// Clear the units of a span from its unit `from` on.
static void clear_units(const memrt__span_t *span, size_t from)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PAGE_HEAP);
    memrt__segment_t *segment = memrt__segment_of(span);
    size_t before = memrt__segment_stuck_units(segment), first = memrt__unit_of(span->base) + from;
    MEMRT__ASSERT(from < span->units && segment->used_units >= span->units - from);
    memrt__unit_bits_clear_run(&segment->used, first, span->units - from);
    segment->used_units -= span->units - from;
    memrt__segment_bins_raise(segment, first);
    memrt__page_counts_update_stuck(segment, before);
}

void memrt__span_dissolve(memrt__span_t *span)
{
    clear_units(span, 0);
}

void memrt__span_shorten(memrt__span_t *span, size_t units)
{
    clear_units(span, units);
    span->units = (uint16_t)units;
}

static void unmark_span(memrt__span_t *span)
{
    MEMRT__ASSERT(span->used == 0);
    memrt__unit_bits_clear(&memrt__segment_of(span)->whole, memrt__unit_of(span->base));
}

static void remove_span(memrt__span_t *span)
{
    bool is_first = lists[span->units] == span;
    *(is_first ? &lists[span->units] : &span->prev->next) = span->next;
    if (span->next != NULL) {
        span->next->prev = span->prev;
    }
    unmark_span(span);
}

memrt__span_t *memrt__whole_spans_pop(size_t units)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PAGE_HEAP);
    memrt__span_t *span = lists[units];
    if (span != NULL) {
        lists[units] = span->next;
        unmark_span(span);
    }
    return span;
}

void memrt__whole_spans_push(memrt__span_t *span)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PAGE_HEAP);
    MEMRT__ASSERT(span->units >= MEMRT__WHOLE_SPAN_MIN && span->units < LENGTHS);
    span->next = lists[span->units];
    if (span->next != NULL) {
        span->next->prev = span;
    } else {
        memrt__unit_bits_set(&filled, span->units);
    }
    lists[span->units] = span;
    memrt__unit_bits_set(&memrt__segment_of(span)->whole, memrt__unit_of(span->base));
}

/// Return the least length of a whole span from `units` on, or MEMRT__SEGMENT_UNITS.
static size_t find_length_from(size_t units)
{
    size_t length;
    while ((length = memrt__unit_bits_find(&filled, units, true)) < MEMRT__SEGMENT_UNITS &&
           lists[length] == NULL) {
        memrt__unit_bits_clear(&filled, length);
    }
    return length;
}

/// Return the least length of a whole span from `units` on, else the least length of all whole
/// spans, else MEMRT__SEGMENT_UNITS.
static size_t find_length(size_t units)
{
    size_t length = find_length_from(units);
    return length < MEMRT__SEGMENT_UNITS ? length : find_length_from(0);
}

void memrt__whole_spans_make_run(size_t units)
{
    size_t length;
    for (unsigned count = 0; count < DISSOLVED_MAX && !memrt__segment_bins_may_have_dirty(units) &&
                             (length = find_length(units)) < MEMRT__SEGMENT_UNITS;
         count++) {
        memrt__span_dissolve(memrt__whole_spans_pop(length));
    }
}

void memrt__whole_spans_dissolve(memrt__segment_t *segment)
{
    size_t unit = memrt__unit_bits_find(&segment->whole, 0, true);
    while (unit < MEMRT__SEGMENT_UNITS) {
        memrt__span_t *span = &segment->spans[unit];
        remove_span(span);
        memrt__span_dissolve(span);
        unit = memrt__unit_bits_find(&segment->whole, unit, true);
    }
}

#if MEMRT_DEBUG

static bool is_span_valid(const memrt__span_t *span, size_t units, const memrt__span_t *prev)
{
    memrt__segment_t *segment = memrt__segment_of(span);
    size_t first = (size_t)(span - segment->spans);
    return MEMRT__HOLDS(span->units == units) && MEMRT__HOLDS(prev == NULL || span->prev == prev) &&
           MEMRT__HOLDS(span->used == 0) && MEMRT__HOLDS(first == segment->head[first]) &&
           MEMRT__HOLDS(memrt__unit_bits_is_set(&segment->whole, first)) &&
           /* otherwise the stuck units of the segment would lack the span */
           MEMRT__HOLDS(!memrt__segment_has_refused_discards(segment));
}

bool memrt__whole_spans_are_valid(size_t marked, size_t *units)
{
    size_t count = 0;
    *units = 0;
    for (size_t length = 0; length < LENGTHS; length++) {
        const memrt__span_t *prev = NULL;
        for (const memrt__span_t *span = lists[length]; span != NULL; span = span->next) {
            if (!is_span_valid(span, length, prev)) {
                return false;
            }
            prev = span;
            *units += length;
            count++;
        }
        bool is_filled = memrt__unit_bits_is_set(&filled, length);
        if (!MEMRT__HOLDS(is_filled || prev == NULL) ||
            !MEMRT__HOLDS(prev == NULL || length >= MEMRT__WHOLE_SPAN_MIN)) {
            return false;
        }
    }
    return MEMRT__HOLDS(count == marked);
}

#endif
