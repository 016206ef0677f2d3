#include "runtime/alloc/heap/segment.h"

#include "runtime/base/atomics.h"
#include "runtime/base/size.h"
#include "runtime/config/options.h"
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

size_t memrt__segment_find_free_run(memrt__segment_t *segment, size_t count)
{
    size_t longest;
    memrt__unit_bits_t bits = memrt__segment_free_units(segment, false);
    size_t first = memrt__unit_bits_find_run(&bits, count, &longest);
    if (first == MEMRT__SEGMENT_UNITS) {
        segment->longest = longest;
    }
    return first;
}

size_t memrt__segment_find_dirty_run(memrt__segment_t *segment, size_t count)
{
    size_t longest;
    memrt__unit_bits_t bits = memrt__segment_free_units(segment, true);
    return memrt__unit_bits_find_run(&bits, count, &longest);
}

void memrt__segment_link(memrt__segment_t *segment)
{
    segment->prev = NULL;
    segment->next = memrt__segments;
    if (memrt__segments != NULL) {
        memrt__segments->prev = segment;
    }
    memrt__segments = segment;
}

void memrt__segment_unlink(memrt__segment_t *segment)
{
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

memrt__span_t *memrt__segment_mark_span(memrt__segment_t *segment, size_t first, size_t units,
                                        size_t dirty)
{
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
        unit += span->units;
        each(span);
    }
}
