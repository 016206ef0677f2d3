#include "runtime/alloc/heap/pages/segment.h"

#include <string.h>

#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/base/size.h"
#include "runtime/config/options.h"
#include "runtime/os/mapping_table.h"
#include "runtime/os/os.h"

size_t memrt__segment_retries;

memrt__unit_bits_t memrt__segment_free_units(const memrt__segment_t *segment, bool dirty)
{
    memrt__unit_bits_t bits;
    for (size_t word = 0; word < MEMRT__SEGMENT_WORDS; word++) {
        bits.word[word] =
            ~segment->used.word[word] & (dirty ? segment->dirty.word[word] : ~(uint64_t)0);
    }
    return bits;
}

memrt__unit_bits_t memrt__segment_purgeable_units(const memrt__segment_t *segment, bool all)
{
    memrt__unit_bits_t bits = memrt__segment_free_units(segment, true);
    for (size_t word = 0; word < MEMRT__SEGMENT_WORDS && !all; word++) {
        bits.word[word] &= segment->idle.word[word];
    }
    return bits;
}

void memrt__segment_count_refusal(memrt__segment_t *segment, uint8_t *count)
{
    if (segment->retries != memrt__segment_retries) {
        segment->retries = memrt__segment_retries;
        segment->discards = segment->unmaps = 0;
    }
    ++*count;
    MEMRT__ASSERT(*count <= MEMRT__REFUSALS_MAX);
}

/// Fresh pages are zero, so only `longest` and the units of the table need values.
memrt__segment_t *memrt__segment_map(void)
{
    memrt__segment_t *segment = memrt__os_map(MEMRT__SEGMENT, 0, MEMRT__SEGMENT);
    if (segment != NULL) {
        MEMRT__ASSERT(memrt__segment_of(segment) == segment);
        memrt__mapping_table_mark(segment, MEMRT__USE_SEGMENT);
        if (memrt__load_relaxed(&memrt__options.huge_pages) == MEMRT__HUGE_ADVISE) {
            memrt__os_advise_huge(segment, MEMRT__SEGMENT, true);
        }
        segment->longest[MEMRT__RUNS_FREE] = MEMRT__SEGMENT_UNITS - MEMRT__SEGMENT_TABLE;
        memrt__unit_bits_set_run(&segment->used, 0, MEMRT__SEGMENT_TABLE);
    }
    return segment;
}

size_t memrt__segment_stuck_units(const memrt__segment_t *segment)
{
    bool is_whole = segment->used_units == 0 && !memrt__segment_has_refused_unmaps(segment);
    if (!memrt__segment_has_refused_discards(segment) || is_whole) {
        return 0;
    }
    memrt__unit_bits_t bits = memrt__segment_free_units(segment, true);
    return memrt__unit_bits_count(&bits);
}

bool memrt__segment_can_unmap(const memrt__segment_t *segment, bool all)
{
    if (segment->used_units != 0 || memrt__segment_has_refused_unmaps(segment)) {
        return false;
    }
    memrt__unit_bits_t bits = memrt__segment_purgeable_units(segment, all);
    return memcmp(&bits, &segment->dirty, sizeof(bits)) == 0;
}

/// Mark free units as units of the span that begins with the unit `head`.
static void mark_units(memrt__segment_t *segment, size_t first, size_t units, size_t head)
{
    MEMRT__ASSERT(first >= MEMRT__SEGMENT_TABLE && first + units <= MEMRT__SEGMENT_UNITS);
    MEMRT__ASSERT(memrt__unit_bits_count_run(&segment->used, first, units) == 0);
    segment->used_units += units;
    memrt__unit_bits_set_run(&segment->used, first, units);
    memrt__unit_bits_set_run(&segment->dirty, first, units);
    memrt__unit_bits_clear_run(&segment->idle, first, units);
    for (size_t unit = first; unit < first + units; unit++) {
        segment->head[unit] = (uint16_t)head;
    }
}

memrt__span_t *memrt__segment_mark_span(memrt__segment_t *segment, size_t first, size_t units,
                                        size_t dirty)
{
    MEMRT__ASSERT(dirty <= units);
    mark_units(segment, first, units, first);
    memrt__span_t *span = &segment->spans[first];
    *span = (memrt__span_t){.base = memrt__segment_address_of(segment, first),
                            .units = (uint16_t)units,
                            .clean = dirty == 0};
    return span;
}

void memrt__segment_extend_span(memrt__segment_t *segment, memrt__span_t *span, size_t units)
{
    size_t first = memrt__unit_of(span->base);
    mark_units(segment, first + span->units, units, first);
    span->units = (uint16_t)(span->units + units);
}

void memrt__segment_visit_spans(memrt__segment_t *segment, void (*each)(memrt__span_t *span))
{
    size_t unit = MEMRT__SEGMENT_TABLE, end = MEMRT__SEGMENT_TABLE + segment->used_units;
    while (unit < end) {
        memrt__span_t *span = &segment->spans[unit];
        MEMRT__ASSERT(span->units != 0 && unit + span->units <= end);
        unit += span->units;
        each(span);
    }
}

#if MEMRT_DEBUG

const memrt__span_t *memrt__segment_next_span(const memrt__segment_t *segment, size_t unit)
{
    unit = memrt__unit_bits_find(&segment->used, memrt__size_max(unit, MEMRT__SEGMENT_TABLE), true);
    return unit < MEMRT__SEGMENT_UNITS ? &segment->spans[segment->head[unit]] : NULL;
}

/// Return whether a span lies within the segment, and whether all its units lead to the span.
static bool is_table_entry_valid(const memrt__segment_t *segment, const memrt__span_t *span)
{
    size_t first = (size_t)(span - segment->spans), end = first + span->units;
    bool inside = MEMRT__HOLDS(first >= MEMRT__SEGMENT_TABLE) && MEMRT__HOLDS(span->units != 0) &&
                  MEMRT__HOLDS(end <= MEMRT__SEGMENT_UNITS) &&
                  MEMRT__HOLDS(memrt__unit_of(span->base) == first) &&
                  MEMRT__HOLDS(memrt__unit_bits_find(&segment->used, first, false) >= end);
    for (size_t unit = first; inside && unit < end; unit++) {
        inside = MEMRT__HOLDS(segment->head[unit] == first);
    }
    return inside;
}

static bool are_spans_valid(const memrt__segment_t *segment)
{
    size_t units = 0, next = MEMRT__SEGMENT_TABLE;
    const memrt__span_t *span;
    while ((span = memrt__segment_next_span(segment, next)) != NULL) {
        if (!is_table_entry_valid(segment, span)) {
            return false;
        }
        units += span->units;
        next = (size_t)(span - segment->spans) + span->units;
    }
    return MEMRT__HOLDS(units == segment->used_units);
}

/// Return whether all units of `part` are units of `whole`.
static bool is_subset(const memrt__unit_bits_t *part, const memrt__unit_bits_t *whole)
{
    uint64_t outside = 0;
    for (size_t word = 0; word < MEMRT__SEGMENT_WORDS; word++) {
        outside |= part->word[word] & ~whole->word[word];
    }
    return outside == 0;
}

/// Return whether no run of `bits` is longer than the bound.
static bool is_bound_valid(const memrt__segment_t *segment, const memrt__unit_bits_t *bits,
                           memrt__runs_t runs)
{
    size_t longest;
    memrt__unit_bits_find_run(bits, MEMRT__SEGMENT_UNITS + 1, &longest);
    return MEMRT__HOLDS(longest <= segment->longest[runs]) &&
           MEMRT__HOLDS(segment->longest[runs] <= MEMRT__SEGMENT_UNITS - MEMRT__SEGMENT_TABLE);
}

static bool are_bitmaps_valid(const memrt__segment_t *segment)
{
    memrt__unit_bits_t spans = segment->used, free_units, free_dirty;
    memrt__unit_bits_clear_run(&spans, 0, MEMRT__SEGMENT_TABLE);
    free_dirty = memrt__segment_free_units(segment, true);
    free_units = memrt__segment_free_units(segment, false);
    return MEMRT__HOLDS(memrt__unit_bits_find(&segment->used, 0, false) >= MEMRT__SEGMENT_TABLE) &&
           MEMRT__HOLDS(memrt__unit_bits_count(&spans) == segment->used_units) &&
           MEMRT__HOLDS(is_subset(&spans, &segment->dirty)) && /* until a discard, which is later */
           MEMRT__HOLDS(is_subset(&segment->whole, &spans)) &&
           MEMRT__HOLDS(is_subset(&segment->idle, &free_dirty)) &&
           is_bound_valid(segment, &free_units, MEMRT__RUNS_FREE) &&
           is_bound_valid(segment, &free_dirty, MEMRT__RUNS_DIRTY);
}

bool memrt__segment_is_valid(const memrt__segment_t *segment)
{
    return MEMRT__HOLDS(memrt__segment_of(segment) == segment) &&
           MEMRT__HOLDS(segment->discards <= MEMRT__REFUSALS_MAX) &&
           MEMRT__HOLDS(segment->unmaps <= MEMRT__REFUSALS_MAX) && are_bitmaps_valid(segment) &&
           are_spans_valid(segment);
}

#endif
