#include "runtime/alloc/heap/pages/page_heap.h"

#include "runtime/alloc/heap/pages/page_counts.h"
#include "runtime/alloc/heap/pages/segment.h"
#include "runtime/alloc/heap/pages/segment_bins.h"
#include "runtime/alloc/heap/pages/segment_purge.h"
#include "runtime/alloc/heap/pages/segment_rounds.h"
#include "runtime/alloc/heap/pages/whole_spans.h"
#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/os/latency.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"

/* The lock of rank PAGE_HEAP protects all state of the page heap. */

static memrt__segment_t *add_segment(void)
{
    MEMRT__TIMED(MEMRT_LATENCY_GROW);
    memrt__segment_t *segment = memrt__segment_map();
    if (segment != NULL) {
        memrt__segment_link(segment);
    }
    return segment;
}

/// Find a segment with a run of `units` dirty free units from unit `*first` on. Whole spans are
/// dissolved as necessary. Failure: returns NULL.
static memrt__segment_t *find_dirty_segment(size_t units, size_t *first)
{
    memrt__segment_t *segment = memrt__segment_bins_find_dirty(units, first);
    if (segment == NULL) {
        memrt__whole_spans_make_run(units);
        segment = memrt__segment_bins_find_dirty(units, first);
    }
    return segment;
}

/// Find a segment with `units` free units from unit `*first` on. Dirty units are preferred, because
/// their pages are in memory. Maps a segment if necessary. Failure: NULL when out of memory.
static memrt__segment_t *find_segment(size_t units, size_t *first)
{
    memrt__segment_t *segment = find_dirty_segment(units, first);
    if (segment == NULL) {
        segment = memrt__segment_bins_find_free(units, first);
    }
    if (segment == NULL) {
        *first = MEMRT__SEGMENT_TABLE;
        segment = add_segment();
    }
    return segment;
}

/// A span has taken `units` units, and `dirty` is the number of dirty units. If the numbers differ,
/// set `*grew`, and purge above the budget.
static void note_taken(size_t units, size_t dirty, bool *grew)
{
    if (dirty < units) {
        *grew = true;
        memrt__segment_purge_above_budget();
    }
}

/// Cut a span from a segment. Sets `*grew` if a unit of the span is not dirty.
static memrt__span_t *cut_span(memrt__segment_t *segment, size_t first, size_t units, bool *grew)
{
    size_t dirty = memrt__unit_bits_count_run(&segment->dirty, first, units),
           before = memrt__segment_stuck_units(segment);
    memrt__page_counts_take(units, dirty);
    memrt__span_t *span = memrt__segment_mark_span(segment, first, units, dirty);
    memrt__page_counts_update_stuck(segment, before);
    note_taken(units, dirty, grew);
    return span;
}

static memrt__span_t *take_whole_span(size_t units)
{
    memrt__span_t *span = memrt__whole_spans_pop(units);
    if (span != NULL) {
        memrt__page_counts_take(units, units);
        *span = (memrt__span_t){.base = span->base, .units = span->units};
    }
    return span;
}

static void give_span(memrt__span_t *span)
{
    memrt__segment_t *segment = memrt__segment_of(span);
    MEMRT__ASSERT(span->used == 0);
    memrt__page_counts_give(span->units);
    memrt__segment_note_dirty(segment);
    if (span->units < MEMRT__WHOLE_SPAN_MIN || memrt__segment_has_refused_discards(segment)) {
        memrt__span_dissolve(span);
    } else {
        memrt__whole_spans_push(span);
    }
}

void memrt__page_heap_give(memrt__span_t *spans)
{
    memrt__lock(MEMRT__RANK_PAGE_HEAP);
    while (spans != NULL) {
        memrt__span_t *next = spans->next;
        give_span(spans);
        spans = next;
    }
    memrt__unlock(MEMRT__RANK_PAGE_HEAP);
}

memrt__span_t *memrt__page_heap_span_of(const void *address)
{
    memrt__segment_t *segment = memrt__segment_of(address);
    return &segment->spans[segment->head[memrt__unit_of(address)]];
}

memrt__span_t *memrt__page_heap_take(size_t units, bool *grew)
{
    MEMRT__ASSERT(units != 0 && units <= MEMRT__SPAN_MAX / MEMRT__UNIT);
    memrt__lock(MEMRT__RANK_PAGE_HEAP);
    memrt__span_t *span = take_whole_span(units);
    if (span == NULL) {
        size_t first;
        memrt__segment_t *segment = find_segment(units, &first);
        span = segment == NULL ? NULL : cut_span(segment, first, units, grew);
    }
    MEMRT__ASSERT(span == NULL || (span->units == units && span->used == 0));
    memrt__unlock(MEMRT__RANK_PAGE_HEAP);
    return span;
}

/// Add the `units` units after a span to the span. Returns false if some of the units are in use.
static bool extend_span(memrt__span_t *span, size_t units, bool *grew)
{
    memrt__segment_t *segment = memrt__segment_of(span);
    size_t first = memrt__unit_of(span->base) + span->units, end = first + units;
    if (end > MEMRT__SEGMENT_UNITS || memrt__unit_bits_find(&segment->used, first, true) < end) {
        return false;
    }
    size_t dirty = memrt__unit_bits_count_run(&segment->dirty, first, units),
           before = memrt__segment_stuck_units(segment);
    memrt__page_counts_take(units, dirty);
    memrt__segment_extend_span(segment, span, units);
    memrt__page_counts_update_stuck(segment, before);
    note_taken(units, dirty, grew);
    return true;
}

static void shorten_span(memrt__span_t *span, size_t units)
{
    memrt__page_counts_give(span->units - units);
    memrt__segment_note_dirty(memrt__segment_of(span));
    memrt__span_shorten(span, units);
}

bool memrt__page_heap_resize(memrt__span_t *span, size_t units, bool *grew)
{
    bool resized = true;
    MEMRT__ASSERT(units != 0 && units <= MEMRT__SPAN_MAX / MEMRT__UNIT && span->used != 0);
    memrt__lock(MEMRT__RANK_PAGE_HEAP);
    if (units > span->units) {
        resized = extend_span(span, units - span->units, grew);
    } else if (units < span->units) {
        shorten_span(span, units);
    }
    memrt__unlock(MEMRT__RANK_PAGE_HEAP);
    return resized;
}

memrt__span_t *memrt__page_heap_take_whole(size_t units, size_t most)
{
    memrt__span_t *spans = NULL, **end = &spans;
    memrt__lock(MEMRT__RANK_PAGE_HEAP);
    while (most-- != 0 && (*end = take_whole_span(units)) != NULL) {
        end = &(*end)->next;
    }
    memrt__unlock(MEMRT__RANK_PAGE_HEAP);
    return spans;
}

/* A step of a purge under the lock ends after so many segments, or after so many units. */
#define STEP_SEGMENTS 16
#define STEP_UNITS (4 * MEMRT__SEGMENT_UNITS)

/// Purge the next segments of a round; returns units. `*more` is false at the end of the round.
static size_t purge_step(size_t round, bool all, bool *more)
{
    size_t units = 0;
    for (unsigned visits = 0; *more && visits < STEP_SEGMENTS && units < STEP_UNITS; visits++) {
        memrt__segment_t *segment =
            memrt__segment_rounds_next(all ? MEMRT__ROUND_ALL : MEMRT__ROUND_IDLE, round);
        *more = segment != NULL;
        if (*more) {
            units += memrt__segment_purge(segment, all);
        }
    }
    return units;
}

/// Pass the lock to a waiting thread. With `wait`, wait for the end of a slow fork. Returns false
/// if the lock is not taken.
static bool pass_lock(bool wait)
{
    bool locked = memrt__lock_pass(MEMRT__RANK_PAGE_HEAP);
    if (!locked && wait) {
        memrt__lock(MEMRT__RANK_PAGE_HEAP);
        locked = true;
    }
    return locked;
}

/// Purge in steps while `proceed` returns true, and return bytes. The caller holds the lock, which
/// is released.
static size_t run_purge(bool all, bool (*proceed)(void), bool wait)
{
    size_t units = 0, round = memrt__segment_rounds_start();
    bool more = true, locked = true;
    memrt__lock_begin_steps(MEMRT__RANK_PAGE_HEAP);
    while (locked && more && proceed()) {
        units += purge_step(round, all, &more);
        locked = pass_lock(wait);
    }
    memrt__lock_end_steps(MEMRT__RANK_PAGE_HEAP);
    if (locked) {
        memrt__page_counts_restart_mark();
        memrt__unlock(MEMRT__RANK_PAGE_HEAP);
    }
    return units * MEMRT__UNIT;
}

size_t memrt__page_heap_purge_while(bool all, bool (*proceed)(void))
{
    return memrt__lock_or_fork(MEMRT__RANK_PAGE_HEAP) ? run_purge(all, proceed, false) : 0;
}

static bool proceed_always(void)
{
    return true;
}

size_t memrt__page_heap_purge(bool all)
{
    return memrt__page_heap_purge_while(all, proceed_always);
}

size_t memrt__page_heap_release(void)
{
    memrt__lock(MEMRT__RANK_PAGE_HEAP);
    return run_purge(true, proceed_always, true);
}

void memrt__page_heap_retry(void)
{
    memrt__lock(MEMRT__RANK_PAGE_HEAP);
    memrt__segment_retries++;
    memrt__store_relaxed(&memrt__page_counts.stuck, 0);
    memrt__unlock(MEMRT__RANK_PAGE_HEAP);
}

void memrt__page_heap_advise(bool huge)
{
    memrt__segment_t *segment;
    memrt__lock(MEMRT__RANK_PAGE_HEAP);
    size_t round = memrt__segment_rounds_start();
    memrt__lock_begin_steps(MEMRT__RANK_PAGE_HEAP);
    while ((segment = memrt__segment_rounds_next(MEMRT__ROUND_ADVICE, round)) != NULL) {
        memrt__os_advise_huge(segment, MEMRT__SEGMENT, huge);
        (void)pass_lock(true);
    }
    memrt__lock_end_steps(MEMRT__RANK_PAGE_HEAP);
    memrt__unlock(MEMRT__RANK_PAGE_HEAP);
}

size_t memrt__page_heap_cached(void)
{
    return memrt__load_relaxed(&memrt__page_counts.dirty_free) * MEMRT__UNIT;
}

size_t memrt__page_heap_aging(void)
{
    size_t cached = memrt__page_heap_cached(),
           refused = memrt__load_relaxed(&memrt__page_counts.stuck) * MEMRT__UNIT;
    return cached > refused ? cached - refused : 0;
}

size_t memrt__page_heap_used(void)
{
    return memrt__load_relaxed(&memrt__page_counts.in_spans) * MEMRT__UNIT;
}

void memrt__page_heap_adopt(memrt__segment_t *segment)
{
    segment->longest[MEMRT__RUNS_FREE] -= segment->used_units; /* spans lie without gaps */
    memrt__page_counts_take(segment->used_units, 0); /* the units never were in `dirty_free` */
    memrt__segment_link(segment);
}

#if MEMRT_DEBUG

/// Sums over all segments, in units, and the number of whole free spans.
typedef struct sums {
    size_t spans, dirty, stuck, whole;
} sums_t;

static bool add_segments(sums_t *sums)
{
    for (const memrt__segment_t *segment = memrt__segment_rounds_first(); segment != NULL;
         segment = memrt__segment_rounds_after(segment)) {
        if (!memrt__segment_is_valid(segment)) {
            return false;
        }
        memrt__unit_bits_t dirty = memrt__segment_free_units(segment, true);
        sums->spans += segment->used_units;
        sums->dirty += memrt__unit_bits_count(&dirty);
        sums->stuck += memrt__segment_stuck_units(segment);
        sums->whole += memrt__unit_bits_count(&segment->whole);
    }
    return true;
}

bool memrt__page_heap_is_valid(void)
{
    const memrt__page_counts_t *counts = &memrt__page_counts;
    sums_t sums = {0};
    size_t segments, whole = 0;
    memrt__lock(MEMRT__RANK_PAGE_HEAP);
    bool valid = memrt__segment_rounds_are_valid(&segments) && add_segments(&sums) &&
                 memrt__segment_bins_are_valid(segments) && memrt__segment_purge_is_valid() &&
                 memrt__whole_spans_are_valid(sums.whole, &whole) &&
                 MEMRT__HOLDS(counts->in_spans + whole == sums.spans) &&
                 MEMRT__HOLDS(counts->dirty_free == sums.dirty + whole) &&
                 MEMRT__HOLDS(counts->stuck == sums.stuck) &&
                 MEMRT__HOLDS(counts->most_in_spans >= counts->in_spans);
    memrt__unlock(MEMRT__RANK_PAGE_HEAP);
    return valid;
}

#endif
