#include "support/suite.h"

#include <string.h>

#include "conformance/pattern.h"
#include "runtime/alloc/allocator.h"
#include "runtime/alloc/pages.h"
#include "runtime/alloc/spare.h"
#include "runtime/alloc/purger.h"
#include "runtime/alloc/warm.h"
#include "runtime/base/options.h"
#include "support/advice.h"
#include "support/crew.h"
#include "support/kernel.h"

#define SEGMENT_UNITS (MEMRT__SEGMENT / MEMRT__UNIT)

static size_t bytes_of(const memrt__span_t *span)
{
    return span->units * MEMRT__UNIT;
}

static memrt__span_t *take(size_t units)
{
    memrt__span_t *span = memrt__pages_take(units);
    ck_assert_ptr_nonnull(span);
    ck_assert_uint_eq(span->units, units);
    return span;
}

/// Let nobody else purge and nothing be there to purge. The span that is returned keeps its segment
/// from going back whole.
static memrt__span_t *begin(void)
{
    suite_set_decay(MEMRT__DECAY_NEVER);
    memrt__allocator_release_unused(&memrt__pool_allocator);
    ck_assert_uint_eq(memrt__pages_cached(), 0);
    return take(1);
}

static void end(memrt__span_t *anchor)
{
    kernel_obey();
    memrt__pages_give(anchor);
    memrt__pages_purge(true);
    ck_assert_uint_eq(memrt__pages_cached(), 0);
}

TEST(a_span_has_its_units_for_itself_and_each_address_in_it_leads_to_it)
{
    enum { SPANS = 40 };
    memrt__span_t *anchor = begin(), *spans[SPANS];
    for (unsigned i = 0; i < SPANS; i++) {
        spans[i] = take(1 + i * 37 % (MEMRT__SPAN_MAX / MEMRT__UNIT));
        ck_assert_uint_eq((uintptr_t)spans[i]->base % MEMRT__UNIT, 0);
        pattern_write(spans[i]->base, bytes_of(spans[i]), i);
    }
    for (unsigned i = 0; i < SPANS; i++) {
        ck_assert(pattern_holds(spans[i]->base, bytes_of(spans[i]), i));
        for (size_t at = 0; at < bytes_of(spans[i]); at += MEMRT__UNIT / 2) {
            ck_assert_ptr_eq(memrt__pages_span_of(spans[i]->base + at), spans[i]);
        }
    }
    for (unsigned i = 0; i < SPANS; i += 2) {
        memrt__pages_give(spans[i]);
    }
    for (unsigned i = 0; i < SPANS; i += 2) {
        spans[i] = take(1 + i);
        memset(spans[i]->base, 0xEE, bytes_of(spans[i]));
    }
    for (unsigned i = 1; i < SPANS; i += 2) {
        ck_assert(pattern_holds(spans[i]->base, bytes_of(spans[i]), i));
    }
    for (unsigned i = 0; i < SPANS; i++) {
        memrt__pages_give(spans[i]);
    }
    end(anchor);
}

TEST(a_gap_between_spans_is_filled_by_one_of_its_length)
{
    memrt__span_t *anchor = begin(), *spans[3];
    for (size_t i = 0; i < 3; i++) {
        spans[i] = take(5);
    }
    const void *gap = spans[1]->base;
    memrt__pages_give(spans[1]);
    spans[1] = take(5);
    ck_assert_ptr_eq(spans[1]->base, gap);
    for (size_t i = 0; i < 3; i++) {
        memrt__pages_give(spans[i]);
    }
    end(anchor);
}

TEST(the_long_span_that_came_back_last_is_the_next_of_its_length)
{
    memrt__span_t *anchor = begin(), *spans[4];
    char *bases[4];
    for (size_t i = 0; i < 4; i++) {
        spans[i] = take(32);
        bases[i] = spans[i]->base;
        memset(bases[i], 0xEE, bytes_of(spans[i]));
    }
    size_t order[] = {2, 0, 3, 1};
    for (size_t i = 0; i < 4; i++) {
        memrt__pages_give(spans[order[i]]);
    }
    ck_assert_uint_eq(memrt__pages_cached(), 4 * 32 * MEMRT__UNIT);
    for (size_t i = 0; i < 4; i++) {
        memrt__span_t *span = take(32);
        ck_assert_ptr_eq(span->base, bases[order[3 - i]]);
        ck_assert(!span->clean && span->used == 0 && span->free == NULL && span->fresh == NULL);
        ck_assert_uint_eq(memrt__pages_cached(), (3 - i) * 32 * MEMRT__UNIT);
    }
    for (size_t i = 0; i < 4; i++) {
        memrt__pages_give(spans[i]);
    }
    end(anchor);
}

TEST(long_spans_that_nobody_uses_are_cut_up_for_other_lengths_before_fresh_pages_are_touched)
{
    size_t lengths[] = {1, 9, 31, 33, 64};
    for (size_t i = 0; i < 5; i++) {
        memrt__span_t *anchor = begin(), *one = take(32), *other = take(32);
        ck_assert_ptr_eq(other->base, one->base + 32 * MEMRT__UNIT);
        memset(one->base, 0xEE, bytes_of(one) + bytes_of(other));
        const char *start = one->base, *stop = start + 64 * MEMRT__UNIT;
        memrt__pages_give(one);
        memrt__pages_give(other);
        memrt__span_t *span = take(lengths[i]);
        ck_assert(!span->clean && span->base >= start && span->base < stop);
        ck_assert_uint_eq(memrt__pages_cached(), (64 - lengths[i]) * MEMRT__UNIT);
        memrt__pages_give(span);
        end(anchor);
    }
}

TEST(pages_in_memory_are_taken_before_those_that_went_back_wherever_they_lie)
{
    memrt__span_t *anchor = begin(), *low = take(8), *high = take(8);
    memset(low->base, 0xEE, bytes_of(low));
    memset(high->base, 0xEE, bytes_of(high));
    memrt__span_t *end_of_high = take(1);
    const char *warm = high->base;
    memrt__pages_give(low);
    ck_assert_uint_eq(memrt__pages_purge(true), 8 * MEMRT__UNIT);
    memrt__pages_give(high);
    memrt__span_t *span = take(8);
    ck_assert_ptr_eq(span->base, warm);
    ck_assert(!span->clean);
    memrt__pages_give(span);
    memrt__pages_give(end_of_high);
    end(anchor);
}

TEST(pages_that_went_back_and_were_used_again_wait_as_long_as_others)
{
    memrt__span_t *anchor = begin(), *span = take(8);
    memset(span->base, 0xEE, bytes_of(span));
    const char *base = span->base;
    memrt__pages_give(span);
    memrt__pages_purge(false);
    ck_assert_uint_eq(memrt__pages_purge(false), 8 * MEMRT__UNIT);
    span = take(8);
    ck_assert_ptr_eq(span->base, base);
    memset(span->base, 0xEE, bytes_of(span));
    memrt__pages_give(span);
    ck_assert_uint_eq(memrt__pages_purge(false), 0);
    ck_assert_uint_eq(memrt__pages_purge(false), 8 * MEMRT__UNIT);
    end(anchor);
}

TEST(the_largest_span_fits_a_segment_and_pages_are_used_again_before_more_are_mapped)
{
    memrt__span_t *anchor = begin();
    size_t maps = kernel_calls(KERNEL_MAP);
    for (int i = 0; i < 20; i++) {
        memrt__span_t *span = take(MEMRT__SPAN_MAX / MEMRT__UNIT);
        memset(span->base, 1, bytes_of(span));
        memrt__pages_give(span);
    }
    ck_assert_uint_le(kernel_calls(KERNEL_MAP), maps + 1);
    end(anchor);
}

TEST(a_span_is_clean_only_when_nothing_was_in_any_of_its_units)
{
    memrt__span_t *anchor = begin();
    memrt__span_t *span = take(4);
    char *base = span->base;
    ck_assert(span->clean);
    ck_assert(pattern_is_zero(base, bytes_of(span)));
    memset(base, 0xEE, bytes_of(span));
    memrt__pages_give(span);
    ck_assert_uint_eq(memrt__pages_cached(), 4 * MEMRT__UNIT);
    ck_assert_uint_eq(memrt__pages_purge(true), 4 * MEMRT__UNIT);
    span = take(2);
    ck_assert_ptr_eq(span->base, base);
    memset(base, 0xEE, bytes_of(span));
    memrt__pages_give(span);
    span = take(4); /* two of them were used, two were not */
    ck_assert_ptr_eq(span->base, base);
    ck_assert(!span->clean);
    memrt__pages_give(span);
    memrt__pages_purge(true);
    span = take(4);
    ck_assert_ptr_eq(span->base, base);
    ck_assert(span->clean);
    ck_assert(pattern_is_zero(base, bytes_of(span)));
    memrt__pages_give(span);
    end(anchor);
}

TEST(a_purge_gives_back_what_stayed_free_since_the_purge_before)
{
    memrt__span_t *anchor = begin();
    memrt__span_t *idle = take(3), *busy = take(5);
    memrt__pages_give(idle);
    memrt__pages_give(busy);
    ck_assert_uint_eq(memrt__pages_purge(false), 0);
    busy = take(5);
    memrt__pages_give(busy);
    ck_assert_uint_eq(memrt__pages_purge(false), 3 * MEMRT__UNIT);
    ck_assert_uint_eq(memrt__pages_cached(), 5 * MEMRT__UNIT);
    ck_assert_uint_eq(memrt__pages_purge(false), 5 * MEMRT__UNIT);
    ck_assert_uint_eq(memrt__pages_cached(), 0);
    end(anchor);
}

TEST(a_segment_without_spans_goes_back_whole)
{
    memrt__span_t *anchor = begin();
    memrt__span_t *spans[12];
    for (size_t i = 0; i < 12; i++) {
        spans[i] = take(MEMRT__SPAN_MAX / MEMRT__UNIT);
    }
    for (size_t i = 0; i < 12; i++) {
        memrt__pages_give(spans[i]);
    }
    size_t unmaps = kernel_calls(KERNEL_UNMAP);
    memrt__pages_purge(true);
    ck_assert_uint_ge(kernel_calls(KERNEL_UNMAP), unmaps + 10);
    ck_assert_uint_eq(memrt__pages_cached(), 0);
    end(anchor);
}

TEST(units_that_the_system_does_not_take_back_stay_dirty_until_it_does)
{
    memrt__span_t *anchor = begin();
    memrt__span_t *span = take(6);
    memset(span->base, 0xEE, bytes_of(span));
    memrt__pages_give(span);
    kernel_refuse(KERNEL_DISCARD, 0, SIZE_MAX);
    ck_assert_uint_eq(memrt__pages_purge(true), 0);
    ck_assert_uint_eq(memrt__pages_cached(), 6 * MEMRT__UNIT);
    span = take(6);
    ck_assert(!span->clean);
    memrt__pages_give(span);
    kernel_obey();
    ck_assert_uint_eq(memrt__pages_purge(true), 6 * MEMRT__UNIT);
    ck_assert_uint_eq(memrt__pages_cached(), 0);
    end(anchor);
}

TEST(a_segment_that_is_not_unmapped_gives_its_pages_and_serves_on)
{
    memrt__span_t *anchor = begin();
    memrt__span_t *span = take(8);
    char *base = span->base;
    memset(base, 0xEE, bytes_of(span));
    memrt__pages_give(span);
    memrt__pages_give(anchor);
    kernel_refuse(KERNEL_UNMAP, 0, SIZE_MAX);
    ck_assert_uint_ge(memrt__pages_purge(true), 9 * MEMRT__UNIT);
    ck_assert_uint_eq(memrt__pages_cached(), 0);
    size_t maps = kernel_calls(KERNEL_MAP);
    span = take(8);
    ck_assert_uint_eq(kernel_calls(KERNEL_MAP), maps);
    ck_assert(span->clean);
    ck_assert(pattern_is_zero(span->base, bytes_of(span)));
    memrt__pages_give(span);
    kernel_obey();
    size_t unmaps = kernel_calls(KERNEL_UNMAP);
    memrt__pages_purge(true);
    ck_assert_uint_gt(kernel_calls(KERNEL_UNMAP), unmaps);
}

/// Take spans until one needs a new segment.
static size_t fill_segments(memrt__span_t **spans, size_t most)
{
    size_t count = 0;
    kernel_refuse(KERNEL_MAP, 0, SIZE_MAX);
    while (count < most && (spans[count] = memrt__pages_take(64)) != NULL) {
        count++;
    }
    ck_assert_uint_lt(count, most);
    return count;
}

TEST(without_memory_there_is_no_span_and_nothing_changed)
{
    memrt__span_t *anchor = begin(), *spans[400];
    size_t count = fill_segments(spans, 400), cached = memrt__pages_cached();
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_null(memrt__pages_take(64));
    }
    ck_assert_uint_eq(memrt__pages_cached(), cached);
    kernel_obey();
    spans[count] = take(64);
    for (size_t i = 0; i <= count; i++) {
        memrt__pages_give(spans[i]);
    }
    end(anchor);
}

TEST(mappings_that_are_kept_are_given_back_for_a_span_that_there_is_no_memory_for)
{
    memrt__span_t *anchor = begin(), *spans[400];
    size_t bytes, count = fill_segments(spans, 400);
    kernel_obey();
    ck_assert(memrt__warm_bytes((size_t)3 << 20, &bytes));
    void *mapping = memrt__warm_take(&memrt__warm_shared, bytes, 64, false);
    ck_assert_ptr_nonnull(mapping);
    memrt__warm_give(&memrt__warm_shared, mapping, bytes);
    ck_assert_uint_eq(memrt__warm_cached(&memrt__warm_shared), bytes);
    kernel_refuse(KERNEL_MAP, 0, 1);
    spans[count] = take(64);
    ck_assert_uint_eq(memrt__warm_cached(&memrt__warm_shared), 0);
    for (size_t i = 0; i <= count; i++) {
        memrt__pages_give(spans[i]);
    }
    end(anchor);
}

TEST(mappings_that_are_kept_stay_while_there_is_memory_for_spans)
{
    memrt__span_t *anchor = begin(), *span = take(64);
    size_t bytes;
    ck_assert(memrt__warm_bytes((size_t)3 << 20, &bytes));
    void *mapping = memrt__warm_take(&memrt__warm_shared, bytes, 64, false);
    memrt__warm_give(&memrt__warm_shared, mapping, bytes);
    memrt__pages_give(span);
    span = take(64);
    ck_assert_uint_eq(memrt__warm_cached(&memrt__warm_shared), bytes);
    memrt__warm_purge_all();
    memrt__pages_give(span);
    end(anchor);
}

/* On a machine whose pages are larger than a unit, a part of a page must never go. */
TEST(segments_are_advised_in_the_mode_that_says_so_and_when_it_changes)
{
    size_t was = memrt__options.huge_pages; /* which the segments that stay are to have again */
    memrt__span_t *spans[8];
    memrt__options.huge_pages = MEMRT__HUGE_ADVISE;
    for (size_t i = 0; i < 8; i++) {
        spans[i] = take(MEMRT__SPAN_MAX / MEMRT__UNIT);
    }
    ck_assert(!advice_is_taken() || advice_at(spans[7]->base) == ADVICE_HUGE);
    memrt__pages_advise(false);
    ck_assert(!advice_is_taken() || advice_at(spans[7]->base) == ADVICE_SMALL);
    memrt__pages_advise(true);
    ck_assert(!advice_is_taken() || advice_at(spans[7]->base) == ADVICE_HUGE);
    memrt__options.huge_pages = was;
    memrt__pages_advise(was == MEMRT__HUGE_ADVISE);
    for (size_t i = 0; i < 8; i++) {
        memrt__pages_give(spans[i]);
    }
    memrt__purge_all();
}

TEST(where_pages_are_larger_than_units_a_purge_takes_none_from_its_neighbours)
{
    size_t pages[] = {(size_t)16 << 10, (size_t)64 << 10};
    for (size_t p = 0; p < 2; p++) {
        memrt__span_t *anchor = begin(), *spans[64];
        for (unsigned i = 0; i < 64; i++) {
            spans[i] = take(1 + i % 5);
            pattern_write(spans[i]->base, bytes_of(spans[i]), i);
        }
        for (unsigned i = 0; i < 64; i += 3) {
            memrt__pages_give(spans[i]);
        }
        memrt__span_t *wide = take(40);
        memset(wide->base, 0xEE, bytes_of(wide));
        memrt__pages_give(wide);
        kernel_pretend_page_size(pages[p]);
        size_t before = memrt__pages_cached(), given = memrt__pages_purge(true);
        ck_assert_uint_gt(given, 0);
        ck_assert_uint_eq(given % pages[p], 0);
        ck_assert_uint_eq(memrt__pages_cached(), before - given);
        kernel_obey();
        for (unsigned i = 0; i < 64; i++) {
            if (i % 3 != 0) {
                ck_assert(pattern_holds(spans[i]->base, bytes_of(spans[i]), i));
                memrt__pages_give(spans[i]);
            }
        }
        end(anchor);
    }
}

static void take_and_purge(size_t index, void *context)
{
    (void)context;
    for (unsigned round = 0; round < 300; round++) {
        size_t units = 1 + (round * 7 + index * 13) % 200;
        memrt__span_t *span = memrt__pages_take(units);
        REQUIRE(span != NULL && span->units == units);
        REQUIRE(!span->clean || pattern_is_zero(span->base, bytes_of(span)));
        pattern_write(span->base, bytes_of(span), round);
        if ((round + index) % 4 == 0) {
            memrt__pages_purge(round % 8 == 0);
        }
        REQUIRE(pattern_holds(span->base, bytes_of(span), round));
        memrt__pages_give(span);
    }
}

TEST(purges_that_run_at_once_end_and_take_nothing_from_those_who_use_pages)
{
    memrt__span_t *anchor = begin();
    crew_run(4, take_and_purge, NULL);
    end(anchor);
}

/// Spans of 16 units, of which every other one is given back.
#define COMB 20
static void comb(memrt__span_t *teeth[COMB])
{
    for (size_t i = 0; i < COMB; i++) {
        teeth[i] = take(16);
    }
    for (size_t i = 1; i < COMB; i += 2) {
        memrt__pages_give(teeth[i]);
    }
}

TEST(free_runs_that_are_too_short_do_not_stay_beside_fresh_ones)
{
    memrt__span_t *anchor = begin();
    memrt__span_t *teeth[COMB];
    comb(teeth);
    ck_assert_uint_eq(memrt__pages_cached(), COMB / 2 * 16 * MEMRT__UNIT);
    size_t used = memrt__pages_used();
    memrt__span_t *longer = take(COMB / 2 * 16);
    ck_assert_uint_eq(memrt__pages_used(), used + COMB / 2 * 16 * MEMRT__UNIT);
    ck_assert_uint_le(memrt__pages_cached(), memrt__spare());
    memrt__pages_give(longer);
    for (size_t i = 0; i < COMB; i += 2) {
        memrt__pages_give(teeth[i]);
    }
    end(anchor);
}

TEST(free_runs_stay_when_the_system_refuses_to_take_them_and_nothing_is_lost)
{
    memrt__span_t *anchor = begin();
    memrt__span_t *teeth[COMB];
    comb(teeth);
    size_t cached = memrt__pages_cached();
    kernel_refuse(KERNEL_DISCARD, 0, SIZE_MAX);
    memrt__span_t *longer = take(COMB / 2 * 16);
    ck_assert_uint_ge(memrt__pages_cached(), cached - 16 * MEMRT__UNIT); /* it begins in the last */
    kernel_obey();
    memrt__pages_give(longer);
    for (size_t i = 0; i < COMB; i += 2) {
        memrt__pages_give(teeth[i]);
    }
    end(anchor);
}
