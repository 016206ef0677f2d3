/// Tests of the page heap.

#include "support/suite.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/pattern.h"
#include "runtime/alloc/allocator.h"
#include "runtime/alloc/heap/large_cache.h"
#include "runtime/alloc/heap/large_cache_purge.h"
#include "runtime/alloc/heap/pages/page_heap.h"
#include "runtime/alloc/heap/pages/segment_bins.h"
#include "runtime/alloc/heap/pages/segment_purge.h"
#include "runtime/alloc/heap/pages/segment_rounds.h"
#include "runtime/alloc/heap/purger.h"
#include "runtime/alloc/heap/retention_budget.h"
#include "runtime/config/options.h"
#include "runtime/os/lock.h"
#include "support/advice.h"
#include "support/child.h"
#include "support/crew.h"
#include "support/kernel.h"

#define SEGMENT_UNITS (MEMRT__SEGMENT / MEMRT__UNIT)

static size_t compute_span_bytes(const memrt__span_t *span)
{
    return span->units * MEMRT__UNIT;
}

static memrt__span_t *take_span_or_null(size_t units)
{
    bool grew = false;
    memrt__span_t *span = memrt__page_heap_take(units, &grew);
    if (grew) {
        memrt__large_cache_make_room();
    }
    return span;
}

static memrt__span_t *take_span(size_t units)
{
    memrt__span_t *span = take_span_or_null(units);
    ck_assert_ptr_nonnull(span);
    ck_assert_uint_eq(span->units, units);
    return span;
}

/// Stop the purger and empty the caches. The returned span keeps its segment from going back as a
/// whole.
static memrt__span_t *empty_caches(void)
{
    suite_set_decay(MEMRT__DECAY_NEVER);
    memrt__allocator_release_unused(&memrt__heap_allocator);
    ck_assert_uint_eq(memrt__page_heap_cached(), 0);
    return take_span(1);
}

static void expect_empty_caches(memrt__span_t *anchor)
{
    kernel_obey();
    memrt__page_heap_give(anchor);
    memrt__page_heap_purge(true);
    ck_assert_uint_eq(memrt__page_heap_cached(), 0);
}

TEST(spans_do_not_overlap_and_are_found_by_any_address)
{
    enum { SPANS = 40 };
    memrt__span_t *anchor = empty_caches(), *spans[SPANS];
    for (unsigned i = 0; i < SPANS; i++) {
        spans[i] = take_span(1 + i * 37 % (MEMRT__SPAN_MAX / MEMRT__UNIT));
        ck_assert_uint_eq((uintptr_t)spans[i]->base % MEMRT__UNIT, 0);
        pattern_write(spans[i]->base, compute_span_bytes(spans[i]), i);
    }
    for (unsigned i = 0; i < SPANS; i++) {
        ck_assert(pattern_holds(spans[i]->base, compute_span_bytes(spans[i]), i));
        for (size_t at = 0; at < compute_span_bytes(spans[i]); at += MEMRT__UNIT / 2) {
            ck_assert_ptr_eq(memrt__page_heap_span_of(spans[i]->base + at), spans[i]);
        }
    }
    for (unsigned i = 0; i < SPANS; i += 2) {
        memrt__page_heap_give(spans[i]);
    }
    for (unsigned i = 0; i < SPANS; i += 2) {
        spans[i] = take_span(1 + i);
        memset(spans[i]->base, 0xEE, compute_span_bytes(spans[i]));
    }
    for (unsigned i = 1; i < SPANS; i += 2) {
        ck_assert(pattern_holds(spans[i]->base, compute_span_bytes(spans[i]), i));
    }
    for (unsigned i = 0; i < SPANS; i++) {
        memrt__page_heap_give(spans[i]);
    }
    expect_empty_caches(anchor);
}

TEST(gap_between_spans_is_reused_for_equal_length)
{
    memrt__span_t *anchor = empty_caches(), *spans[3];
    for (size_t i = 0; i < 3; i++) {
        spans[i] = take_span(5);
    }
    const void *gap = spans[1]->base;
    memrt__page_heap_give(spans[1]);
    spans[1] = take_span(5);
    ck_assert_ptr_eq(spans[1]->base, gap);
    for (size_t i = 0; i < 3; i++) {
        memrt__page_heap_give(spans[i]);
    }
    expect_empty_caches(anchor);
}

TEST(freed_long_spans_are_reused_last_in_first_out)
{
    memrt__span_t *anchor = empty_caches(), *spans[4];
    char *bases[4];
    for (size_t i = 0; i < 4; i++) {
        spans[i] = take_span(32);
        bases[i] = spans[i]->base;
        memset(bases[i], 0xEE, compute_span_bytes(spans[i]));
    }
    size_t order[] = {2, 0, 3, 1};
    for (size_t i = 0; i < 4; i++) {
        memrt__page_heap_give(spans[order[i]]);
    }
    ck_assert_uint_eq(memrt__page_heap_cached(), 4 * 32 * MEMRT__UNIT);
    for (size_t i = 0; i < 4; i++) {
        memrt__span_t *span = take_span(32);
        ck_assert_ptr_eq(span->base, bases[order[3 - i]]);
        ck_assert(!span->clean && span->used == 0 && span->free == NULL && span->fresh == NULL);
        ck_assert_uint_eq(memrt__page_heap_cached(), (3 - i) * 32 * MEMRT__UNIT);
    }
    for (size_t i = 0; i < 4; i++) {
        memrt__page_heap_give(spans[i]);
    }
    expect_empty_caches(anchor);
}

TEST(free_long_spans_are_split_before_fresh_pages_are_used)
{
    size_t lengths[] = {1, 9, 31, 33, 64};
    for (size_t i = 0; i < 5; i++) {
        memrt__span_t *anchor = empty_caches(), *one = take_span(32), *other = take_span(32);
        ck_assert_ptr_eq(other->base, one->base + 32 * MEMRT__UNIT);
        memset(one->base, 0xEE, compute_span_bytes(one) + compute_span_bytes(other));
        const char *start = one->base, *stop = start + 64 * MEMRT__UNIT;
        memrt__page_heap_give(one);
        memrt__page_heap_give(other);
        memrt__span_t *span = take_span(lengths[i]);
        ck_assert(!span->clean && span->base >= start && span->base < stop);
        ck_assert_uint_eq(memrt__page_heap_cached(), (64 - lengths[i]) * MEMRT__UNIT);
        memrt__page_heap_give(span);
        expect_empty_caches(anchor);
    }
}

TEST(cached_pages_are_reused_before_purged_pages)
{
    memrt__span_t *anchor = empty_caches(), *low = take_span(8), *high = take_span(8);
    memset(low->base, 0xEE, compute_span_bytes(low));
    memset(high->base, 0xEE, compute_span_bytes(high));
    memrt__span_t *end_of_high = take_span(1);
    const char *cache = high->base;
    memrt__page_heap_give(low);
    ck_assert_uint_eq(memrt__page_heap_purge(true), 8 * MEMRT__UNIT);
    memrt__page_heap_give(high);
    memrt__span_t *span = take_span(8);
    ck_assert_ptr_eq(span->base, cache);
    ck_assert(!span->clean);
    memrt__page_heap_give(span);
    memrt__page_heap_give(end_of_high);
    expect_empty_caches(anchor);
}

TEST(purged_pages_used_again_survive_the_first_idle_purge)
{
    memrt__span_t *anchor = empty_caches(), *span = take_span(8);
    memset(span->base, 0xEE, compute_span_bytes(span));
    const char *base = span->base;
    memrt__page_heap_give(span);
    memrt__page_heap_purge(false);
    ck_assert_uint_eq(memrt__page_heap_purge(false), 8 * MEMRT__UNIT);
    span = take_span(8);
    ck_assert_ptr_eq(span->base, base);
    memset(span->base, 0xEE, compute_span_bytes(span));
    memrt__page_heap_give(span);
    ck_assert_uint_eq(memrt__page_heap_purge(false), 0);
    ck_assert_uint_eq(memrt__page_heap_purge(false), 8 * MEMRT__UNIT);
    expect_empty_caches(anchor);
}

TEST(largest_span_needs_at_most_1_mapping_for_20_uses)
{
    memrt__span_t *anchor = empty_caches();
    size_t maps = kernel_calls(KERNEL_MAP);
    for (int i = 0; i < 20; i++) {
        memrt__span_t *span = take_span(MEMRT__SPAN_MAX / MEMRT__UNIT);
        memset(span->base, 1, compute_span_bytes(span));
        memrt__page_heap_give(span);
    }
    ck_assert_uint_le(kernel_calls(KERNEL_MAP), maps + 1);
    expect_empty_caches(anchor);
}

TEST(span_is_clean_only_if_all_units_are_fresh_or_purged)
{
    memrt__span_t *anchor = empty_caches();
    memrt__span_t *span = take_span(4);
    char *base = span->base;
    ck_assert(span->clean);
    ck_assert(pattern_is_zero(base, compute_span_bytes(span)));
    memset(base, 0xEE, compute_span_bytes(span));
    memrt__page_heap_give(span);
    ck_assert_uint_eq(memrt__page_heap_cached(), 4 * MEMRT__UNIT);
    ck_assert_uint_eq(memrt__page_heap_purge(true), 4 * MEMRT__UNIT);
    span = take_span(2);
    ck_assert_ptr_eq(span->base, base);
    memset(base, 0xEE, compute_span_bytes(span));
    memrt__page_heap_give(span);
    span = take_span(4); /* two of its units were used, two were not */
    ck_assert_ptr_eq(span->base, base);
    ck_assert(!span->clean);
    memrt__page_heap_give(span);
    memrt__page_heap_purge(true);
    span = take_span(4);
    ck_assert_ptr_eq(span->base, base);
    ck_assert(span->clean);
    ck_assert(pattern_is_zero(base, compute_span_bytes(span)));
    memrt__page_heap_give(span);
    expect_empty_caches(anchor);
}

TEST(purge_returns_pages_that_stayed_free_since_last_purge)
{
    memrt__span_t *anchor = empty_caches();
    memrt__span_t *idle = take_span(3), *busy = take_span(5);
    memrt__page_heap_give(idle);
    memrt__page_heap_give(busy);
    ck_assert_uint_eq(memrt__page_heap_purge(false), 0);
    busy = take_span(5);
    memrt__page_heap_give(busy);
    ck_assert_uint_eq(memrt__page_heap_purge(false), 3 * MEMRT__UNIT);
    ck_assert_uint_eq(memrt__page_heap_cached(), 5 * MEMRT__UNIT);
    ck_assert_uint_eq(memrt__page_heap_purge(false), 5 * MEMRT__UNIT);
    ck_assert_uint_eq(memrt__page_heap_cached(), 0);
    expect_empty_caches(anchor);
}

TEST(purge_unmaps_segments_without_spans)
{
    memrt__span_t *anchor = empty_caches();
    memrt__span_t *spans[12];
    for (size_t i = 0; i < 12; i++) {
        spans[i] = take_span(MEMRT__SPAN_MAX / MEMRT__UNIT);
    }
    for (size_t i = 0; i < 12; i++) {
        memrt__page_heap_give(spans[i]);
    }
    size_t unmaps = kernel_calls(KERNEL_UNMAP);
    memrt__page_heap_purge(true);
    ck_assert_uint_ge(kernel_calls(KERNEL_UNMAP), unmaps + 10);
    ck_assert_uint_eq(memrt__page_heap_cached(), 0);
    expect_empty_caches(anchor);
}

TEST(units_stay_dirty_while_discard_is_refused)
{
    memrt__span_t *anchor = empty_caches();
    memrt__span_t *span = take_span(6);
    memset(span->base, 0xEE, compute_span_bytes(span));
    memrt__page_heap_give(span);
    kernel_refuse(KERNEL_DISCARD, 0, SIZE_MAX);
    ck_assert_uint_eq(memrt__page_heap_purge(true), 0);
    ck_assert_uint_eq(memrt__page_heap_cached(), 6 * MEMRT__UNIT);
    span = take_span(6);
    ck_assert(!span->clean);
    memrt__page_heap_give(span);
    kernel_obey();
    ck_assert_uint_eq(memrt__page_heap_purge(true), 6 * MEMRT__UNIT);
    ck_assert_uint_eq(memrt__page_heap_cached(), 0);
    expect_empty_caches(anchor);
}

TEST(refused_unmap_discards_pages_and_keeps_segment_usable)
{
    memrt__span_t *anchor = empty_caches();
    memrt__span_t *span = take_span(8);
    char *base = span->base;
    memset(base, 0xEE, compute_span_bytes(span));
    memrt__page_heap_give(span);
    memrt__page_heap_give(anchor);
    kernel_refuse(KERNEL_UNMAP, 0, SIZE_MAX);
    ck_assert_uint_ge(memrt__page_heap_purge(true), 9 * MEMRT__UNIT);
    ck_assert_uint_eq(memrt__page_heap_cached(), 0);
    size_t maps = kernel_calls(KERNEL_MAP);
    span = take_span(8);
    ck_assert_uint_eq(kernel_calls(KERNEL_MAP), maps);
    ck_assert(span->clean);
    ck_assert(pattern_is_zero(span->base, compute_span_bytes(span)));
    memrt__page_heap_give(span);
    kernel_obey();
    size_t unmaps = kernel_calls(KERNEL_UNMAP);
    memrt__page_heap_purge(true);
    ck_assert_uint_gt(kernel_calls(KERNEL_UNMAP), unmaps);
}

/// Take spans until a span needs a new segment.
static size_t fill_segments(memrt__span_t **spans, size_t most)
{
    size_t count = 0;
    kernel_refuse(KERNEL_MAP, 0, SIZE_MAX);
    while (count < most && (spans[count] = take_span_or_null(64)) != NULL) {
        count++;
    }
    ck_assert_uint_lt(count, most);
    return count;
}

TEST(out_of_memory_returns_no_span_and_keeps_cached_bytes)
{
    memrt__span_t *anchor = empty_caches(), *spans[400];
    size_t count = fill_segments(spans, 400), cached = memrt__page_heap_cached();
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_null(take_span_or_null(64));
    }
    ck_assert_uint_eq(memrt__page_heap_cached(), cached);
    kernel_obey();
    spans[count] = take_span(64);
    for (size_t i = 0; i <= count; i++) {
        memrt__page_heap_give(spans[i]);
    }
    expect_empty_caches(anchor);
}

TEST(large_cache_stays_when_a_cached_span_is_taken)
{
    memrt__span_t *anchor = empty_caches(), *span = take_span(64);
    size_t bytes;
    ck_assert(memrt__large_cache_bytes((size_t)3 << 20, &bytes));
    void *mapping = memrt__large_cache_take(&memrt__large_cache_shared, bytes, 64, false);
    memrt__large_cache_give(&memrt__large_cache_shared, mapping, bytes);
    memrt__page_heap_give(span);
    span = take_span(64);
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared), bytes);
    memrt__large_cache_purge_all();
    memrt__page_heap_give(span);
    expect_empty_caches(anchor);
}

/* The last of 8 spans of maximum size lies in a segment made after the change of the option. */
TEST(segments_follow_the_huge_page_mode_and_its_changes)
{
    size_t was = memrt__options.huge_pages; /* mode to restore for the remaining segments */
    memrt__span_t *spans[8];
    memrt__options.huge_pages = MEMRT__HUGE_ADVISE;
    for (size_t i = 0; i < 8; i++) {
        spans[i] = take_span(MEMRT__SPAN_MAX / MEMRT__UNIT);
    }
    ck_assert(!advice_is_taken() || advice_at(spans[7]->base) == ADVICE_HUGE);
    memrt__page_heap_advise(false);
    ck_assert(!advice_is_taken() || advice_at(spans[7]->base) == ADVICE_SMALL);
    memrt__page_heap_advise(true);
    ck_assert(!advice_is_taken() || advice_at(spans[7]->base) == ADVICE_HUGE);
    memrt__options.huge_pages = was;
    memrt__page_heap_advise(was == MEMRT__HUGE_ADVISE);
    for (size_t i = 0; i < 8; i++) {
        memrt__page_heap_give(spans[i]);
    }
    memrt__purge_all();
}

/// Keep partly used pages: with pages larger than a unit, a purge must never discard a part of a
/// page.
TEST(purge_with_large_pages_keeps_contents_of_used_spans)
{
    size_t pages[] = {(size_t)16 << 10, (size_t)64 << 10};
    for (size_t p = 0; p < 2; p++) {
        memrt__span_t *anchor = empty_caches(), *spans[64];
        for (unsigned i = 0; i < 64; i++) {
            spans[i] = take_span(1 + i % 5);
            pattern_write(spans[i]->base, compute_span_bytes(spans[i]), i);
        }
        for (unsigned i = 0; i < 64; i += 3) {
            memrt__page_heap_give(spans[i]);
        }
        memrt__span_t *wide = take_span(40);
        memset(wide->base, 0xEE, compute_span_bytes(wide));
        memrt__page_heap_give(wide);
        kernel_pretend_page_size(pages[p]);
        size_t before = memrt__page_heap_cached(), given = memrt__page_heap_purge(true);
        ck_assert_uint_gt(given, 0);
        ck_assert_uint_eq(given % pages[p], 0);
        ck_assert_uint_eq(memrt__page_heap_cached(), before - given);
        kernel_obey();
        for (unsigned i = 0; i < 64; i++) {
            if (i % 3 != 0) {
                ck_assert(pattern_holds(spans[i]->base, compute_span_bytes(spans[i]), i));
                memrt__page_heap_give(spans[i]);
            }
        }
        expect_empty_caches(anchor);
    }
}

TEST(purge_keeps_free_run_shorter_than_a_page)
{
    memrt__span_t *anchor = empty_caches(), *spans[3] = {take_span(1), take_span(1), take_span(1)};
    memrt__page_heap_give(spans[1]);
    kernel_pretend_page_size((size_t)64 << 10);
    size_t discards = kernel_calls(KERNEL_DISCARD);
    ck_assert_uint_eq(memrt__page_heap_purge(true), 0);
    ck_assert_uint_eq(kernel_calls(KERNEL_DISCARD), discards);
    ck_assert_uint_eq(memrt__page_heap_cached(), MEMRT__UNIT);
    kernel_obey();
    memrt__page_heap_give(spans[0]);
    memrt__page_heap_give(spans[2]);
    expect_empty_caches(anchor);
}

static void take_and_purge(size_t index, void *context)
{
    (void)context;
    for (unsigned round = 0; round < 300; round++) {
        size_t units = 1 + (round * 7 + index * 13) % 200;
        memrt__span_t *span = take_span_or_null(units);
        REQUIRE(span != NULL && span->units == units);
        REQUIRE(!span->clean || pattern_is_zero(span->base, compute_span_bytes(span)));
        pattern_write(span->base, compute_span_bytes(span), round);
        if ((round + index) % 4 == 0) {
            memrt__page_heap_purge(round % 8 == 0);
        }
        REQUIRE(pattern_holds(span->base, compute_span_bytes(span), round));
        memrt__page_heap_give(span);
    }
}

TEST(concurrent_purges_end_and_keep_contents_of_used_spans)
{
    memrt__span_t *anchor = empty_caches();
    crew_run(4, take_and_purge, NULL);
    expect_empty_caches(anchor);
}

/// Take spans of 16 units, and give every other span back.
#define COMB 20
static void take_comb(memrt__span_t *teeth[COMB])
{
    for (size_t i = 0; i < COMB; i++) {
        teeth[i] = take_span(16);
    }
    for (size_t i = 1; i < COMB; i += 2) {
        memrt__page_heap_give(teeth[i]);
    }
}

TEST(taking_a_longer_span_purges_short_free_runs)
{
    memrt__span_t *anchor = empty_caches();
    memrt__span_t *teeth[COMB];
    take_comb(teeth);
    ck_assert_uint_eq(memrt__page_heap_cached(), COMB / 2 * 16 * MEMRT__UNIT);
    size_t used = memrt__page_heap_used();
    memrt__span_t *longer = take_span(COMB / 2 * 16);
    ck_assert_uint_eq(memrt__page_heap_used(), used + COMB / 2 * 16 * MEMRT__UNIT);
    ck_assert_uint_le(memrt__page_heap_cached(), memrt__retention_budget());
    memrt__page_heap_give(longer);
    for (size_t i = 0; i < COMB; i += 2) {
        memrt__page_heap_give(teeth[i]);
    }
    expect_empty_caches(anchor);
}

TEST(short_free_runs_stay_cached_when_discard_is_refused)
{
    memrt__span_t *anchor = empty_caches();
    memrt__span_t *teeth[COMB];
    take_comb(teeth);
    size_t cached = memrt__page_heap_cached();
    kernel_refuse(KERNEL_DISCARD, 0, SIZE_MAX);
    memrt__span_t *longer = take_span(COMB / 2 * 16);
    /* the span begins in the last free run */
    ck_assert_uint_ge(memrt__page_heap_cached(), cached - 16 * MEMRT__UNIT);
    kernel_obey();
    memrt__page_heap_give(longer);
    for (size_t i = 0; i < COMB; i += 2) {
        memrt__page_heap_give(teeth[i]);
    }
    expect_empty_caches(anchor);
}

/// Take spans of one unit, and give every other span back: RUNS free runs.
#define RUNS 400
static void take_scattered_spans(memrt__span_t *spans[2 * RUNS])
{
    for (size_t i = 0; i < 2 * RUNS; i++) {
        spans[i] = take_span(1);
    }
    for (size_t i = 1; i < 2 * RUNS; i += 2) {
        memrt__page_heap_give(spans[i]);
    }
}

static void give_remaining_spans(memrt__span_t *spans[2 * RUNS])
{
    for (size_t i = 0; i < 2 * RUNS; i += 2) {
        memrt__page_heap_give(spans[i]);
    }
}

static size_t count_failing_calls(size_t discards, size_t unmaps)
{
    return kernel_calls(KERNEL_DISCARD) - discards + kernel_calls(KERNEL_UNMAP) - unmaps;
}

/* Each mapping for a segment has two ends to unmap. */
TEST(locked_pages_cost_few_calls_per_segment)
{
    enum { LARGE = 300, LARGE_UNITS = 110, SEGMENTS = 80, CALLS = 8 + 2 };
    memrt__span_t *anchor = empty_caches(), *spans[2 * RUNS], *large[LARGE];
    take_scattered_spans(spans);
    kernel_refuse(KERNEL_DISCARD, 0, SIZE_MAX);
    kernel_refuse(KERNEL_UNMAP, 0, SIZE_MAX);
    size_t discards = kernel_calls(KERNEL_DISCARD), unmaps = kernel_calls(KERNEL_UNMAP);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < LARGE; i++) {
            large[i] = take_span(LARGE_UNITS);
            memrt__page_heap_purge(i % 2 == 0);
        }
        for (size_t i = 0; i < LARGE; i++) {
            memrt__page_heap_give(large[i]);
            memrt__page_heap_purge(false);
        }
    }
    ck_assert_uint_le(count_failing_calls(discards, unmaps), SEGMENTS * CALLS);
    ck_assert_uint_gt(memrt__page_heap_cached(), 0);
    ck_assert_uint_eq(memrt__page_heap_aging(), 0);
    kernel_obey();
    ck_assert_uint_eq(memrt__page_heap_purge(true), 0);
    memrt__page_heap_retry();
    ck_assert_uint_eq(memrt__page_heap_aging(), memrt__page_heap_cached());
    ck_assert_uint_gt(memrt__page_heap_purge(true), 0);
    give_remaining_spans(spans);
    expect_empty_caches(anchor);
}

TEST(locked_pages_are_returned_with_their_whole_segment)
{
    memrt__span_t *anchor = empty_caches(), *spans[2 * RUNS];
    take_scattered_spans(spans);
    kernel_refuse(KERNEL_DISCARD, 0, SIZE_MAX);
    for (int i = 0; i < 4; i++) {
        memrt__page_heap_purge(true);
    }
    ck_assert_uint_eq(memrt__page_heap_aging(), 0);
    give_remaining_spans(spans);
    memrt__page_heap_give(anchor);
    ck_assert_uint_eq(memrt__page_heap_aging(), memrt__page_heap_cached());
    memrt__page_heap_purge(true);
    ck_assert_uint_eq(memrt__page_heap_cached(), 0);
    kernel_obey();
    expect_empty_caches(take_span(1));
}

/// Take and give spans at random, in segments with and without refused pages.
TEST_EACH(aging_bytes_match_purge_after_random_refusals, 4)
{
    enum { SPANS = 60 };
    memrt__span_t *anchor = empty_caches(), *spans[SPANS] = {NULL};
    unsigned seed = (unsigned)index + 1;
    for (int step = 0; step < 4000; step++) {
        size_t i = (size_t)rand_r(&seed) % SPANS;
        if (step % 500 == 0) {
            kernel_refuse(KERNEL_DISCARD, (size_t)rand_r(&seed) % 8, step % 1000 == 0 ? 20 : 0);
        }
        if (spans[i] == NULL) {
            spans[i] = take_span(1 + (size_t)rand_r(&seed) % 100);
        } else {
            memrt__page_heap_give(spans[i]);
            spans[i] = NULL;
        }
        if (rand_r(&seed) % 16 == 0) {
            memrt__page_heap_purge(rand_r(&seed) % 2 == 0);
        }
        ck_assert_uint_le(memrt__page_heap_aging(), memrt__page_heap_cached());
    }
    kernel_obey();
    for (size_t i = 0; i < SPANS; i++) {
        if (spans[i] != NULL) {
            memrt__page_heap_give(spans[i]);
        }
    }
    size_t aging = memrt__page_heap_aging();
    ck_assert_uint_eq(memrt__page_heap_purge(true), aging);
    ck_assert_uint_eq(memrt__page_heap_aging(), 0);
    memrt__page_heap_retry();
    expect_empty_caches(anchor);
}

/// Thread 0 purges all free memory that it leaves. The remaining threads purge idle memory, as the
/// purger does.
static void free_and_purge(size_t index, void *context)
{
    size_t *done = context;
    for (int i = 0; index == 0 && i < 500; i++) {
        memrt__span_t *spans[16];
        for (size_t n = 0; n < 16; n++) {
            spans[n] = take_span(SEGMENT_UNITS / 2);
        }
        for (size_t n = 0; n < 16; n++) {
            memrt__page_heap_give(spans[n]);
        }
        memrt__page_heap_purge(true);
        REQUIRE(memrt__page_heap_cached() == 0);
    }
    while (index != 0 && memrt__load_relaxed(done) == 0) {
        memrt__page_heap_purge(false);
    }
    memrt__store_relaxed(done, 1);
}

TEST(full_purge_leaves_nothing_during_concurrent_idle_purges)
{
    size_t done = 0;
    memrt__span_t *anchor = empty_caches();
    crew_run(3, free_and_purge, &done);
    expect_empty_caches(anchor);
}

/// Spans of many segments, three to a segment, of which only the tables of the segments are in
/// memory.
enum { MANY = 600, THIRD = 168, PER_SEGMENT = 3, SLOTS = (MANY + 2) * PER_SEGMENT };

static memrt__span_t **take_many_segments(void)
{
    memrt__span_t **spans = calloc(SLOTS, sizeof(*spans));
    ck_assert_ptr_nonnull(spans);
    for (size_t i = 0; i < MANY * PER_SEGMENT; i++) {
        spans[i] = take_span(THIRD);
    }
    return spans;
}

/// Give every span back, except the first of each segment if `keep_first`.
static void give_spans(memrt__span_t **spans, bool keep_first)
{
    for (size_t i = 0; i < MANY * PER_SEGMENT; i++) {
        if (!keep_first || i % PER_SEGMENT != 0) {
            memrt__page_heap_give(spans[i]);
            spans[i] = NULL;
        }
    }
}

static void give_remaining(memrt__span_t **spans)
{
    for (size_t i = 0; i < SLOTS; i++) {
        if (spans[i] != NULL) {
            memrt__page_heap_give(spans[i]);
        }
    }
    free(spans);
}

/// A process may have a few segments of the test framework besides the test's own segments.
#define FURTHER_SEGMENTS 40

#if MEMRT_DEBUG

TEST(takes_look_at_few_of_many_segments)
{
    memrt__span_t *anchor = empty_caches();
    size_t looks = memrt__segment_bins_looks;
    memrt__span_t **spans = take_many_segments();
    ck_assert_uint_le(memrt__segment_bins_looks - looks, 3 * MANY * PER_SEGMENT);
    give_spans(spans, true);
    memrt__page_heap_purge(true);
    looks = memrt__segment_bins_looks;
    for (size_t i = 1; i < MANY * PER_SEGMENT; i += PER_SEGMENT) {
        spans[i] = take_span(THIRD + 50); /* a clean run in each segment */
        spans[i + 1] = take_span(1);
    }
    ck_assert_uint_le(memrt__segment_bins_looks - looks, (size_t)6 * MANY);
    give_remaining(spans);
    expect_empty_caches(anchor);
}

TEST(take_of_a_long_span_looks_at_no_segment_with_short_runs)
{
    memrt__span_t *anchor = empty_caches(), **spans = take_many_segments();
    for (size_t i = 0; i < MANY * PER_SEGMENT; i += PER_SEGMENT) {
        memrt__page_heap_give(spans[i]); /* no two free runs are neighbours */
        spans[i] = NULL;
    }
    memrt__page_heap_purge(true);
    size_t looks = memrt__segment_bins_looks;
    for (int i = 0; i < 8; i++) {
        memrt__span_t *longer = take_span(THIRD + 1);
        memrt__page_heap_give(longer);
        memrt__page_heap_purge(true);
    }
    ck_assert_uint_le(memrt__segment_bins_looks - looks, FURTHER_SEGMENTS);
    give_remaining(spans);
    expect_empty_caches(anchor);
}

static size_t count_segments(void)
{
    size_t count = 0;
    memrt__lock(MEMRT__RANK_PAGE_HEAP);
    for (const memrt__segment_t *segment = memrt__segment_rounds_first(); segment != NULL;
         segment = memrt__segment_rounds_after(segment)) {
        count++;
    }
    memrt__unlock(MEMRT__RANK_PAGE_HEAP);
    return count;
}

/* The last segment is visited again by the step that ends the round. */
TEST(purge_visits_each_segment_once)
{
    memrt__span_t *anchor = empty_caches(), **spans = take_many_segments();
    give_spans(spans, true);
    for (int all = 0; all < 2; all++) {
        size_t segments = count_segments(), visits = memrt__segment_purge_visits;
        ck_assert_uint_ge(segments, MANY);
        memrt__page_heap_purge(all != 0);
        ck_assert_uint_eq(memrt__segment_purge_visits - visits, segments);
    }
    give_remaining(spans);
    expect_empty_caches(anchor);
}

TEST(take_above_budget_visits_few_of_many_segments)
{
    memrt__span_t *anchor = empty_caches(), **spans = take_many_segments();
    for (size_t i = 0; i < MANY * PER_SEGMENT; i += PER_SEGMENT) {
        memrt__page_heap_give(spans[i]);
        spans[i] = NULL;
    }
    size_t visits = memrt__segment_purge_visits;
    memrt__span_t *longer = take_span(THIRD + 1);
    ck_assert_uint_le(memrt__segment_purge_visits - visits, 3);
    memrt__page_heap_give(longer);
    give_remaining(spans);
    expect_empty_caches(anchor);
}

#endif

/* Free runs of THIRD units in refusing segments are too short for the further spans. A visit of a
   segment makes one call. */
TEST(take_above_budget_visits_at_most_256_segments)
{
    enum { FURTHER = 2 * MANY };
    memrt__span_t *anchor = empty_caches(), **spans = take_many_segments(), *further[FURTHER];
    for (size_t i = 0; i < MANY * PER_SEGMENT; i += PER_SEGMENT) {
        memrt__page_heap_give(spans[i]);
        spans[i] = NULL;
    }
    kernel_refuse(KERNEL_DISCARD, 0, SIZE_MAX);
    size_t most = 0;
    for (size_t i = 0; i < FURTHER; i++) {
        size_t calls = kernel_calls(KERNEL_DISCARD);
        further[i] = take_span(THIRD + 32);
        calls = kernel_calls(KERNEL_DISCARD) - calls;
        most = calls > most ? calls : most;
    }
    ck_assert_uint_eq(most, 256);
    kernel_obey();
    for (size_t i = 0; i < FURTHER; i++) {
        memrt__page_heap_give(further[i]);
    }
    give_remaining(spans);
    expect_empty_caches(anchor);
}

TEST(take_dissolves_at_most_1024_whole_spans)
{
    enum { SHORT = 9, COUNT = 2 * 1100 };
    memrt__span_t *anchor = empty_caches(), *spans[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        spans[i] = take_span(SHORT);
    }
    for (size_t i = 0; i < COUNT; i += 2) {
        memrt__page_heap_give(spans[i]); /* no two free spans are neighbours */
    }
    char *last = spans[0]->base, *first = spans[COUNT - 2]->base;
    memrt__span_t *longer = take_span(SHORT + 1), *equal = take_span(SHORT);
    ck_assert(equal->base != first); /* the 1,024 spans freed last are dissolved */
    ck_assert(equal->base != last);
    memrt__page_heap_give(equal);
    memrt__page_heap_give(longer);
    for (size_t i = 1; i < COUNT; i += 2) {
        memrt__page_heap_give(spans[i]);
    }
    expect_empty_caches(anchor);
}

TEST(refused_mapping_keeps_bins_of_many_segments_usable)
{
    memrt__span_t *anchor = empty_caches(), **spans = take_many_segments();
    give_spans(spans, true);
    kernel_refuse(KERNEL_MAP, 0, SIZE_MAX);
    size_t made = 0;
    memrt__span_t *span;
    while ((span = take_span_or_null(THIRD + 32)) != NULL) {
        size_t last = made * PER_SEGMENT + 1;
        ck_assert_uint_lt(last, SLOTS);
        ck_assert_ptr_null(spans[last]);
        spans[last] = span;
        made++;
    }
    ck_assert_uint_ge(made, MANY - 1);
    suite_expect_valid();
    kernel_obey();
    give_remaining(spans);
    expect_empty_caches(anchor);
}

TEST(refused_unmap_keeps_segments_in_their_lists)
{
    memrt__span_t *anchor = empty_caches(), **spans = take_many_segments();
    give_spans(spans, false);
    kernel_refuse(KERNEL_UNMAP, 0, MANY / 2);
    memrt__page_heap_purge(true);
    ck_assert_uint_eq(memrt__page_heap_cached(), 0);
    suite_expect_valid();
    kernel_obey();
    size_t unmaps = kernel_calls(KERNEL_UNMAP);
    memrt__page_heap_purge(true);
    ck_assert_uint_ge(kernel_calls(KERNEL_UNMAP) - unmaps, MANY / 2 - 1);
    give_remaining(spans);
    expect_empty_caches(anchor);
}

/// Take and give spans while another thread purges. Each take must wait for one step at most.
static void *use_page_heap(void *context)
{
    size_t *rounds = context;
    for (int i = 0; i < 20; i++) {
        memrt__span_t *span = take_span_or_null(7);
        REQUIRE(span != NULL);
        memrt__page_heap_give(span);
        memrt__store_release(rounds, memrt__load_relaxed(rounds) + 1);
    }
    return NULL;
}

TEST(purge_in_steps_releases_everything_beside_another_thread)
{
    memrt__span_t *anchor = empty_caches(), **spans = take_many_segments();
    give_spans(spans, false);
    pthread_t thread;
    size_t rounds = 0;
    ck_assert_int_eq(pthread_create(&thread, NULL, use_page_heap, &rounds), 0);
    memrt__page_heap_purge(true);
    ck_assert_uint_le(memrt__page_heap_cached(), 7 * MEMRT__UNIT);
    pthread_join(thread, NULL);
    give_remaining(spans);
    expect_empty_caches(anchor);
}

static size_t steps;

static bool proceed_for_three_steps(void)
{
    return ++steps <= 3;
}

TEST(next_purge_begins_where_a_purge_was_stopped)
{
    memrt__span_t *anchor = empty_caches(), **spans = take_many_segments();
    give_spans(spans, true);
    size_t cached = memrt__page_heap_cached(), last = cached, purges = 0;
    do {
        steps = 0;
        memrt__page_heap_purge_while(true, proceed_for_three_steps);
        ck_assert_uint_lt(memrt__page_heap_cached(), last);
        last = memrt__page_heap_cached();
        purges++;
    } while (last != 0);
    ck_assert_uint_gt(purges, 3);
    give_remaining(spans);
    expect_empty_caches(anchor);
}

enum { FORKS = 5 };

/// Fork and wait for the child, FORKS times. `context` counts the forks.
static void *fork_repeatedly(void *context)
{
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            child_start_watchdog();
            _exit(0);
        }
        REQUIRE(child_wait(child) == 0);
        memrt__store_release(context, (size_t)i + 1);
    }
    return NULL;
}

/* AddressSanitizer's allocator leaves its own locks held in such a child. */
TEST(release_releases_everything_while_another_thread_forks)
{
    size_t forks = SUITE_ADDRESS_SANITIZER ? FORKS : 0;
    memrt__span_t *anchor = empty_caches();
    pthread_t thread;
    if (forks == 0) {
        ck_assert_int_eq(pthread_create(&thread, NULL, fork_repeatedly, &forks), 0);
    }
    do {
        memrt__span_t **spans = take_many_segments();
        give_spans(spans, true);
        ck_assert_uint_gt(memrt__page_heap_release(), 0);
        ck_assert_uint_eq(memrt__page_heap_cached(), 0);
        give_remaining(spans);
    } while (memrt__load_acquire(&forks) < FORKS);
    if (!SUITE_ADDRESS_SANITIZER) {
        pthread_join(thread, NULL);
    }
    expect_empty_caches(anchor);
}
