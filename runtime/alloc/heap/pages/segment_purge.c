#include "runtime/alloc/heap/pages/segment_purge.h"

#include "runtime/alloc/heap/pages/page_counts.h"
#include "runtime/alloc/heap/pages/segment_bins.h"
#include "runtime/alloc/heap/pages/segment_list.h"
#include "runtime/alloc/heap/pages/segment_rounds.h"
#include "runtime/alloc/heap/pages/unit_bits.h"
#include "runtime/alloc/heap/pages/whole_spans.h"
#include "runtime/base/check.h"
#include "runtime/base/size.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"

/* Segments that got dirty free units since the last purge of all units; the oldest first. */
static memrt__segment_list_t unpurged;

/// Maximum number of segments that one call purges above the budget. Each span that takes fresh
/// pages calls, so the rest follows soon.
#define VISITS_MAX 256

void memrt__segment_link(memrt__segment_t *segment)
{
    memrt__segment_rounds_add(segment);
    memrt__segment_bins_add(segment);
}

void memrt__segment_add_unpurged(memrt__segment_t *segment)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PAGE_HEAP);
    segment->unpurged = true;
    memrt__segment_list_append(&unpurged, MEMRT__LINKS_UNPURGED, segment);
}

static void forget_dirty(memrt__segment_t *segment)
{
    if (segment->unpurged) {
        segment->unpurged = false;
        memrt__segment_list_remove(&unpurged, MEMRT__LINKS_UNPURGED, segment);
    }
}

/// Give the whole pages between units `start` and `end` back to the system; returns units.
static size_t discard_run(memrt__segment_t *segment, size_t start, size_t end)
{
    size_t page_units = memrt__size_max(memrt__os_page_size() / MEMRT__UNIT, 1);
    start = (start + page_units - 1) / page_units * page_units;
    end = end / page_units * page_units;
    if (start >= end) {
        return 0;
    }
    if (!memrt__os_discard(memrt__segment_address_of(segment, start),
                           (end - start) * MEMRT__UNIT)) {
        memrt__segment_count_refusal(segment, &segment->discards);
        return 0;
    }
    memrt__unit_bits_clear_run(&segment->dirty, start, end - start);
    memrt__unit_bits_clear_run(&segment->idle, start, end - start);
    return end - start;
}

/// Give the runs of `bits` back, until the segment has refused too often; returns units.
static size_t discard_runs(memrt__segment_t *segment, const memrt__unit_bits_t *bits)
{
    size_t units = 0, before = memrt__segment_stuck_units(segment);
    size_t start = memrt__unit_bits_find(bits, 0, true);
    while (start < MEMRT__SEGMENT_UNITS && !memrt__segment_has_refused_discards(segment)) {
        size_t end = memrt__unit_bits_find(bits, start, false);
        units += discard_run(segment, start, end);
        start = memrt__unit_bits_find(bits, end, true);
    }
    memrt__page_counts_purge(units);
    memrt__page_counts_update_stuck(segment, before);
    return units;
}

/// Unmap a segment without spans; `*units` is its number of dirty units. Returns false if the
/// system refused: the segment then stays in the lists.
static bool unmap_segment(memrt__segment_t *segment, size_t *units)
{
    MEMRT__ASSERT(segment->used_units == 0 && !segment->unpurged);
    size_t before = memrt__segment_stuck_units(segment);
    *units = memrt__unit_bits_count(&segment->dirty);
    memrt__segment_bins_remove(segment);
    memrt__segment_rounds_remove(segment);
    if (!memrt__os_unmap(segment, MEMRT__SEGMENT)) {
        memrt__segment_rounds_restore(segment);
        memrt__segment_bins_restore(segment);
        memrt__segment_count_refusal(segment, &segment->unmaps);
        memrt__page_counts_update_stuck(segment, before);
        return false;
    }
    memrt__page_counts_purge(*units);
    return true;
}

#if MEMRT_DEBUG

size_t memrt__segment_purge_visits;

static inline void count_visit(void)
{
    memrt__segment_purge_visits++;
}

#else

static inline void count_visit(void)
{
}

#endif

size_t memrt__segment_purge(memrt__segment_t *segment, bool all)
{
    size_t units;
    count_visit();
    memrt__whole_spans_dissolve(segment); /* the number of stuck units comes from the bitmaps */
    bool unmap = memrt__segment_can_unmap(segment, all);
    if (unmap || all) {
        forget_dirty(segment);
    }
    if (unmap && unmap_segment(segment, &units)) {
        return units;
    }
    memrt__unit_bits_t bits = memrt__segment_purgeable_units(segment, all);
    units = discard_runs(segment, &bits);
    MEMRT__ASSERT(units <= memrt__unit_bits_count(&bits));
    segment->idle = memrt__segment_purgeable_units(segment, true);
    memrt__segment_bins_correct_dirty(segment);
    return units;
}

void memrt__segment_purge_above_budget(void)
{
    for (unsigned visits = 0;
         visits < VISITS_MAX && unpurged.first != NULL && memrt__page_counts_are_above_budget();
         visits++) {
        memrt__segment_purge(unpurged.first, true);
    }
}

#if MEMRT_DEBUG

bool memrt__segment_purge_is_valid(void)
{
    const memrt__segment_t *prev = NULL;
    for (const memrt__segment_t *segment = unpurged.first; segment != NULL;
         segment = segment->links[MEMRT__LINKS_UNPURGED].next) {
        if (!MEMRT__HOLDS(segment->unpurged) ||
            !MEMRT__HOLDS(segment->links[MEMRT__LINKS_UNPURGED].prev == prev)) {
            return false;
        }
        prev = segment;
    }
    return MEMRT__HOLDS(unpurged.last == prev);
}

#endif
