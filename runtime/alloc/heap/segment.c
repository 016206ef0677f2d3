#include "runtime/alloc/heap/segment.h"

#include <string.h>

#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/base/size.h"
#include "runtime/config/options.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"

memrt__segment_t *memrt__segments;

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

/// Return the first unit of the first run of `count` free units, or MEMRT__SEGMENT_UNITS. A search
/// without result updates `longest`.
static size_t find_free_run(memrt__segment_t *segment, size_t count)
{
    size_t longest;
    memrt__unit_bits_t bits = memrt__segment_free_units(segment, false);
    size_t first = memrt__unit_bits_find_run(&bits, count, &longest);
    if (first == MEMRT__SEGMENT_UNITS) {
        segment->longest = longest;
    }
    return first;
}

/// Return the first unit of the first run of `count` dirty free units, or MEMRT__SEGMENT_UNITS.
static size_t find_dirty_run(memrt__segment_t *segment, size_t count)
{
    size_t longest;
    memrt__unit_bits_t bits = memrt__segment_free_units(segment, true);
    return memrt__unit_bits_find_run(&bits, count, &longest);
}

typedef size_t (*find_fn)(memrt__segment_t *segment, size_t count);

static memrt__segment_t *search_segments(find_fn look, size_t units, size_t *first)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PAGE_HEAP);
    for (memrt__segment_t *segment = memrt__segments; segment != NULL; segment = segment->next) {
        if (segment->longest >= units) {
            *first = look(segment, units);
            if (*first < MEMRT__SEGMENT_UNITS) {
                return segment;
            }
        }
    }
    return NULL;
}

memrt__segment_t *memrt__segment_search_free(size_t units, size_t *first)
{
    return search_segments(find_free_run, units, first);
}

memrt__segment_t *memrt__segment_search_dirty(size_t units, size_t *first)
{
    return search_segments(find_dirty_run, units, first);
}

memrt__segment_t *memrt__segment_find_unvisited(size_t round, bool all)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PAGE_HEAP);
    memrt__segment_t *segment = memrt__segments;
    while (segment != NULL && segment->round[all] >= round) {
        segment = segment->next;
    }
    return segment;
}

void memrt__segment_link(memrt__segment_t *segment)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PAGE_HEAP);
    MEMRT__ASSERT(memrt__segments == NULL || memrt__segments->prev == NULL);
    segment->prev = NULL;
    segment->next = memrt__segments;
    if (memrt__segments != NULL) {
        memrt__segments->prev = segment;
    }
    memrt__segments = segment;
}

void memrt__segment_unlink(memrt__segment_t *segment)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PAGE_HEAP);
    MEMRT__ASSERT(segment->next == NULL || segment->next->prev == segment);
    MEMRT__ASSERT(segment == (segment->prev == NULL ? memrt__segments : segment->prev->next));
    *(segment->prev == NULL ? &memrt__segments : &segment->prev->next) = segment->next;
    if (segment->next != NULL) {
        segment->next->prev = segment->prev;
    }
}

/// Fresh pages are zero, so only `longest` and the units of the table need values.
memrt__segment_t *memrt__segment_map(void)
{
    memrt__segment_t *segment = memrt__os_map(MEMRT__SEGMENT, 0, MEMRT__SEGMENT);
    if (segment != NULL) {
        MEMRT__ASSERT(memrt__segment_of(segment) == segment);
        if (memrt__load_relaxed(&memrt__options.huge_pages) == MEMRT__HUGE_ADVISE) {
            memrt__os_advise_huge(segment, MEMRT__SEGMENT, true);
        }
        segment->longest = MEMRT__SEGMENT_UNITS - MEMRT__SEGMENT_TABLE;
        memrt__unit_bits_set_run(&segment->used, 0, MEMRT__SEGMENT_TABLE);
    }
    return segment;
}

size_t memrt__segment_stuck_units(const memrt__segment_t *segment)
{
    bool is_whole = segment->used_units == 0 && segment->unmaps < MEMRT__REFUSALS_MAX;
    if (!memrt__segment_has_refused_discards(segment) || is_whole) {
        return 0;
    }
    memrt__unit_bits_t bits = memrt__segment_free_units(segment, true);
    return memrt__unit_bits_count(&bits);
}

bool memrt__segment_can_unmap(const memrt__segment_t *segment, bool all)
{
    if (segment->used_units != 0 || segment->unmaps == MEMRT__REFUSALS_MAX) {
        return false;
    }
    memrt__unit_bits_t bits = memrt__segment_purgeable_units(segment, all);
    return memcmp(&bits, &segment->dirty, sizeof(bits)) == 0;
}

memrt__span_t *memrt__segment_mark_span(memrt__segment_t *segment, size_t first, size_t units,
                                        size_t dirty)
{
    MEMRT__ASSERT(first >= MEMRT__SEGMENT_TABLE && first + units <= MEMRT__SEGMENT_UNITS);
    MEMRT__ASSERT(memrt__unit_bits_count_run(&segment->used, first, units) == 0);
    MEMRT__ASSERT(dirty <= units);
    segment->used_units += units;
    memrt__unit_bits_set_run(&segment->used, first, units);
    memrt__unit_bits_set_run(&segment->dirty, first, units);
    memrt__unit_bits_clear_run(&segment->idle, first, units);
    for (size_t unit = first; unit < first + units; unit++) {
        segment->head[unit] = (uint16_t)first;
    }
    memrt__span_t *span = &segment->spans[first];
    *span = (memrt__span_t){.base = memrt__segment_address_of(segment, first),
                            .units = (uint16_t)units,
                            .clean = dirty == 0};
    return span;
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
                  MEMRT__HOLDS(span->base == (const char *)segment + first * MEMRT__UNIT) &&
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

static bool are_bitmaps_valid(const memrt__segment_t *segment)
{
    memrt__unit_bits_t spans = segment->used, free_units, free_dirty;
    size_t longest, found;
    memrt__unit_bits_clear_run(&spans, 0, MEMRT__SEGMENT_TABLE);
    free_dirty = memrt__segment_free_units(segment, true);
    free_units = memrt__segment_free_units(segment, false);
    found = memrt__unit_bits_find_run(&free_units, MEMRT__SEGMENT_UNITS + 1, &longest);
    return MEMRT__HOLDS(memrt__unit_bits_find(&segment->used, 0, false) >= MEMRT__SEGMENT_TABLE) &&
           MEMRT__HOLDS(memrt__unit_bits_count(&spans) == segment->used_units) &&
           MEMRT__HOLDS(is_subset(&spans, &segment->dirty)) && /* until a discard, which is later */
           MEMRT__HOLDS(is_subset(&segment->idle, &free_dirty)) &&
           MEMRT__HOLDS(found == MEMRT__SEGMENT_UNITS && longest <= segment->longest);
}

bool memrt__segment_is_valid(const memrt__segment_t *segment)
{
    return MEMRT__HOLDS(memrt__segment_of(segment) == segment) &&
           MEMRT__HOLDS(segment->longest <= MEMRT__SEGMENT_UNITS) &&
           MEMRT__HOLDS(segment->discards <= MEMRT__REFUSALS_MAX) &&
           MEMRT__HOLDS(segment->unmaps <= MEMRT__REFUSALS_MAX) && are_bitmaps_valid(segment) &&
           are_spans_valid(segment);
}

#endif
