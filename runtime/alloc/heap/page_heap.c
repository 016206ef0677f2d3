#include "runtime/alloc/heap/page_heap.h"

#include "runtime/alloc/heap/retention_budget.h"
#include "runtime/alloc/heap/segment.h"
#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/base/size.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"

/* The lock of rank PAGE_HEAP protects all state of this file. Only the next three counts of units
   are also read without the lock. */
static size_t in_spans;    /* in taken spans */
static size_t dirty_free;  /* cached: free, and possibly not zero; includes whole free spans */
static size_t stuck_units; /* part of dirty_free that the system refused too often to take back */

static size_t most_in_spans; /* high-water mark of in_spans; see restart_high_water_mark() */

/* Minimum units of a long span: mostly one large block, so often freed and requested again. */
#define LONG_FROM 9u
#define LENGTHS (MEMRT__SPAN_MAX / MEMRT__UNIT + 1)

/* Freed long spans, kept whole for the next request of the same length. The bitmaps of the segment
   show their units as used, but dirty_free counts the units. */
static memrt__span_t *whole_free_spans[LENGTHS]; /* by units; linked by `next` */
static size_t whole_spans;                       /* number of spans in the lists */

static memrt__segment_t *add_segment(void)
{
    memrt__segment_t *segment = memrt__segment_map();
    if (segment != NULL) {
        memrt__segment_link(segment);
    }
    return segment;
}

/// Add the change of a segment's stuck units to `stuck_units`. `before` is the result of
/// memrt__segment_stuck_units() before the change.
static void update_stuck_units(const memrt__segment_t *segment, size_t before)
{
    memrt__own_add(&stuck_units, memrt__segment_stuck_units(segment) - before);
}

/// Clear the units of a freed span in the bitmaps, so that spans of any length can take the units.
static void dissolve_span(memrt__span_t *span)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PAGE_HEAP);
    memrt__segment_t *segment = memrt__segment_of(span);
    size_t before = memrt__segment_stuck_units(segment);
    MEMRT__ASSERT(segment->used_units >= span->units);
    memrt__unit_bits_clear_run(&segment->used, memrt__unit_of(span->base), span->units);
    segment->used_units -= span->units;
    segment->longest = MEMRT__SEGMENT_UNITS; /* an upper bound, until the next failed search */
    update_stuck_units(segment, before);
}

static memrt__span_t *pop_whole_span(size_t units)
{
    memrt__span_t *span = whole_free_spans[units];
    if (span != NULL) {
        MEMRT__ASSERT(whole_spans != 0 && span->units == units && span->used == 0);
        whole_free_spans[units] = span->next;
        whole_spans--;
    }
    return span;
}

static void push_whole_span(memrt__span_t *span)
{
    span->next = whole_free_spans[span->units];
    whole_free_spans[span->units] = span;
    whole_spans++;
}

static void dissolve_whole_spans(void)
{
    for (size_t units = LONG_FROM; whole_spans != 0; units++) {
        MEMRT__ASSERT(units < LENGTHS);
        memrt__span_t *span;
        while ((span = pop_whole_span(units)) != NULL) {
            dissolve_span(span);
        }
    }
}

/// Find a segment with `units` free units from unit `*first` on. Dirty units are preferred, because
/// their pages are in memory. Maps a segment if necessary. Failure: NULL when out of memory.
static memrt__segment_t *find_segment(size_t units, size_t *first)
{
    dissolve_whole_spans();
    memrt__segment_t *segment =
        dirty_free < units ? NULL : memrt__segment_search_dirty(units, first);
    if (segment == NULL) {
        segment = memrt__segment_search_free(units, first);
    }
    if (segment == NULL) {
        *first = MEMRT__SEGMENT_TABLE;
        segment = add_segment();
    }
    return segment;
}

/// Move free units to `in_spans`. `dirty` of the units were dirty and leave `dirty_free`.
static void count_taken_units(size_t units, size_t dirty)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PAGE_HEAP);
    MEMRT__ASSERT(dirty <= dirty_free && dirty <= units);
    memrt__own_add(&dirty_free, (size_t)0 - dirty);
    memrt__own_add(&in_spans, units);
    most_in_spans = memrt__size_max(most_in_spans, in_spans);
}

static memrt__span_t *cut_span(memrt__segment_t *segment, size_t first, size_t units)
{
    size_t dirty = memrt__unit_bits_count_run(&segment->dirty, first, units),
           before = memrt__segment_stuck_units(segment);
    count_taken_units(units, dirty);
    memrt__span_t *span = memrt__segment_mark_span(segment, first, units, dirty);
    update_stuck_units(segment, before);
    return span;
}

static memrt__span_t *take_whole_span(size_t units)
{
    memrt__span_t *span = pop_whole_span(units);
    if (span != NULL) {
        count_taken_units(units, units);
        *span = (memrt__span_t){.base = span->base, .units = span->units};
    }
    return span;
}

void memrt__page_heap_give(memrt__span_t *span)
{
    memrt__lock(MEMRT__RANK_PAGE_HEAP);
    MEMRT__ASSERT(span->used == 0 && span->units <= in_spans);
    memrt__own_add(&in_spans, (size_t)0 - span->units);
    memrt__own_add(&dirty_free, span->units);
    if (span->units < LONG_FROM || memrt__segment_has_refused_discards(memrt__segment_of(span))) {
        dissolve_span(span);
    } else {
        push_whole_span(span);
    }
    memrt__unlock(MEMRT__RANK_PAGE_HEAP);
}

memrt__span_t *memrt__page_heap_span_of(const void *address)
{
    memrt__segment_t *segment = memrt__segment_of(address);
    return &segment->spans[segment->head[memrt__unit_of(address)]];
}

/// Count a refused discard. At MEMRT__REFUSALS_MAX, whole spans are dissolved, because only units
/// that the bitmaps show as free count as stuck units.
static void count_refused_discard(memrt__segment_t *segment)
{
    if (segment->discards + 1u == MEMRT__REFUSALS_MAX) {
        dissolve_whole_spans();
    }
    segment->discards++;
    MEMRT__ASSERT(segment->discards <= MEMRT__REFUSALS_MAX);
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
        count_refused_discard(segment);
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
    MEMRT__ASSERT(units <= dirty_free);
    memrt__own_add(&dirty_free, (size_t)0 - units);
    update_stuck_units(segment, before);
    return units;
}

/// Unmap a segment without spans; `*units` is its number of dirty units. Returns false if the
/// system refused: the segment then stays in the list.
static bool unmap_segment(memrt__segment_t *segment, size_t *units)
{
    MEMRT__ASSERT(segment->used_units == 0);
    size_t before = memrt__segment_stuck_units(segment);
    *units = memrt__unit_bits_count(&segment->dirty);
    memrt__segment_unlink(segment);
    if (!memrt__os_unmap(segment, MEMRT__SEGMENT)) {
        memrt__segment_link(segment);
        segment->unmaps++;
        update_stuck_units(segment, before);
        return false;
    }
    memrt__own_add(&dirty_free, (size_t)0 - *units);
    return true;
}

/// Unmap a segment, or discard its idle units, with `all` its dirty free units; returns units. All
/// units that stay dirty and free become idle. The segment may be gone afterwards.
static size_t purge_segment(memrt__segment_t *segment, bool all)
{
    size_t units;
    if (memrt__segment_can_unmap(segment, all) && unmap_segment(segment, &units)) {
        return units;
    }
    memrt__unit_bits_t bits = memrt__segment_purgeable_units(segment, all);
    units = discard_runs(segment, &bits);
    MEMRT__ASSERT(units <= memrt__unit_bits_count(&bits));
    segment->idle = memrt__segment_purgeable_units(segment, true);
    return units;
}

/// Purge until units in spans plus dirty free units are within the high-water mark plus the
/// retention budget, or until only stuck units are left. Needed after a span took fresh pages: any
/// dirty free units lay in runs too short for the span.
static void purge_above_budget(void)
{
    size_t room = most_in_spans - in_spans + memrt__retention_budget() / MEMRT__UNIT;
    memrt__segment_t *segment = memrt__segments;
    while (segment != NULL && dirty_free > room && dirty_free > stuck_units) {
        memrt__segment_t *next = segment->next;
        purge_segment(segment, true);
        segment = next;
    }
}

memrt__span_t *memrt__page_heap_take(size_t units, bool *grew)
{
    MEMRT__ASSERT(units != 0 && units <= MEMRT__SPAN_MAX / MEMRT__UNIT);
    memrt__lock(MEMRT__RANK_PAGE_HEAP);
    size_t held = in_spans + dirty_free;
    memrt__span_t *span = take_whole_span(units);
    if (span == NULL) {
        size_t first;
        memrt__segment_t *segment = find_segment(units, &first);
        span = segment == NULL ? NULL : cut_span(segment, first, units);
    }
    if (in_spans + dirty_free > held) {
        *grew = true;
        purge_above_budget();
    }
    MEMRT__ASSERT(span == NULL || (span->units == units && span->used == 0));
    memrt__unlock(MEMRT__RANK_PAGE_HEAP);
    return span;
}

/// Restart the high-water mark at current use, if no units are cached except stuck units.
static void restart_high_water_mark(void)
{
    if (memrt__lock_or_fork(MEMRT__RANK_PAGE_HEAP)) {
        if (dirty_free == stuck_units) {
            most_in_spans = in_spans;
        }
        memrt__unlock(MEMRT__RANK_PAGE_HEAP);
    }
}

/// Purge all segments; returns bytes. The lock is released between segments, so no thread waits
/// longer than one segment takes.
size_t memrt__page_heap_purge(bool all)
{
    static size_t rounds; /* under the lock; number of the last purge */
    size_t bytes = 0;
    if (!memrt__lock_or_fork(MEMRT__RANK_PAGE_HEAP)) {
        return 0;
    }
    size_t round = ++rounds;
    dissolve_whole_spans();
    memrt__unlock(MEMRT__RANK_PAGE_HEAP);
    bool more = true;
    while (more && memrt__lock_or_fork(MEMRT__RANK_PAGE_HEAP)) {
        memrt__segment_t *segment = memrt__segment_find_unvisited(round, all);
        more = segment != NULL;
        if (more) {
            segment->round[all] = round;
            bytes += purge_segment(segment, all) * MEMRT__UNIT;
        }
        memrt__unlock(MEMRT__RANK_PAGE_HEAP);
    }
    restart_high_water_mark();
    return bytes;
}

void memrt__page_heap_retry(void)
{
    memrt__lock(MEMRT__RANK_PAGE_HEAP);
    for (memrt__segment_t *segment = memrt__segments; segment != NULL; segment = segment->next) {
        segment->discards = segment->unmaps = 0;
    }
    memrt__store_relaxed(&stuck_units, 0);
    memrt__unlock(MEMRT__RANK_PAGE_HEAP);
}

void memrt__page_heap_advise(bool huge)
{
    memrt__lock(MEMRT__RANK_PAGE_HEAP);
    for (memrt__segment_t *segment = memrt__segments; segment != NULL; segment = segment->next) {
        memrt__os_advise_huge(segment, MEMRT__SEGMENT, huge);
    }
    memrt__unlock(MEMRT__RANK_PAGE_HEAP);
}

size_t memrt__page_heap_cached(void)
{
    return memrt__load_relaxed(&dirty_free) * MEMRT__UNIT;
}

size_t memrt__page_heap_aging(void)
{
    size_t cached = memrt__page_heap_cached(),
           refused = memrt__load_relaxed(&stuck_units) * MEMRT__UNIT;
    return cached > refused ? cached - refused : 0;
}

size_t memrt__page_heap_used(void)
{
    return memrt__load_relaxed(&in_spans) * MEMRT__UNIT;
}

void memrt__page_heap_adopt(memrt__segment_t *segment)
{
    segment->longest = MEMRT__SEGMENT_UNITS;
    count_taken_units(segment->used_units, 0); /* the units never were in dirty_free */
    memrt__segment_link(segment);
}

#if MEMRT_DEBUG

/// Sums over all segments and whole free spans, in units.
typedef struct sums {
    size_t spans, dirty, stuck, whole, whole_count;
} sums_t;

static bool add_segments(sums_t *sums)
{
    const memrt__segment_t *prev = NULL;
    for (const memrt__segment_t *segment = memrt__segments; segment != NULL;
         prev = segment, segment = segment->next) {
        if (!MEMRT__HOLDS(segment->prev == prev) || !memrt__segment_is_valid(segment)) {
            return false;
        }
        memrt__unit_bits_t dirty = memrt__segment_free_units(segment, true);
        sums->spans += segment->used_units;
        sums->dirty += memrt__unit_bits_count(&dirty);
        sums->stuck += memrt__segment_stuck_units(segment);
    }
    return true;
}

static bool add_whole_spans(sums_t *sums)
{
    for (size_t units = 0; units < LENGTHS; units++) {
        for (const memrt__span_t *span = whole_free_spans[units]; span != NULL; span = span->next) {
            if (!MEMRT__HOLDS(units >= LONG_FROM) || !MEMRT__HOLDS(span->units == units) ||
                !MEMRT__HOLDS(span->used == 0) ||
                !MEMRT__HOLDS(memrt__page_heap_span_of(span->base) == span) ||
                /* otherwise the stuck units of the segment would lack the span */
                !MEMRT__HOLDS(!memrt__segment_has_refused_discards(memrt__segment_of(span)))) {
                return false;
            }
            sums->whole += units;
            sums->whole_count++;
        }
    }
    return true;
}

bool memrt__page_heap_is_valid(void)
{
    sums_t sums = {0};
    memrt__lock(MEMRT__RANK_PAGE_HEAP);
    bool valid = add_segments(&sums) && add_whole_spans(&sums) &&
                 MEMRT__HOLDS(sums.whole_count == whole_spans) &&
                 MEMRT__HOLDS(in_spans + sums.whole == sums.spans) &&
                 MEMRT__HOLDS(dirty_free == sums.dirty + sums.whole) &&
                 MEMRT__HOLDS(stuck_units == sums.stuck) && MEMRT__HOLDS(most_in_spans >= in_spans);
    memrt__unlock(MEMRT__RANK_PAGE_HEAP);
    return valid;
}

#endif
