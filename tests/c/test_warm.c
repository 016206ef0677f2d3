#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/pattern.h"
#include "runtime/alloc/allocator.h"
#include "runtime/alloc/pages.h"
#include "runtime/alloc/spare.h"
#include "runtime/alloc/warm.h"
#include "runtime/base/atomics.h"
#include "runtime/base/options.h"
#include "runtime/base/os.h"
#include "runtime/base/size.h"
#include "support/advice.h"
#include "support/crew.h"
#include "support/kernel.h"

#define MIB ((size_t)1 << 20)

static void begin(void)
{
    suite_set_decay(MEMRT__DECAY_NEVER);
    memrt__options.huge_pages = MEMRT__HUGE_LARGE;
    memrt__allocator_release_unused(&memrt__pool_allocator);
    ck_assert_uint_eq(memrt__warm_cached(&memrt__warm_shared), 0);
}

static size_t bytes_for(size_t size)
{
    size_t bytes;
    ck_assert(memrt__warm_bytes(size, &bytes));
    return bytes;
}

static void *take(size_t bytes)
{
    void *mapping = memrt__warm_take(&memrt__warm_shared, bytes, 64, false);
    ck_assert_ptr_nonnull(mapping);
    return mapping;
}

static void end(void)
{
    kernel_obey();
    memrt__warm_purge(&memrt__warm_shared, UINT64_MAX);
    ck_assert_uint_eq(memrt__warm_cached(&memrt__warm_shared), 0);
}

TEST(a_mapping_is_whole_pages_and_no_more_than_an_eighth_and_two_pages_too_large)
{
    size_t page = memrt__os_page_size();
    for (size_t size = 1; size < (size_t)1 << 50; size += 1 + size / 3) {
        size_t bytes = bytes_for(size);
        ck_assert_uint_ge(bytes, size);
        ck_assert_uint_eq(bytes % page, 0);
        ck_assert_uint_le(bytes - size, size / 8 + 2 * page);
    }
}

TEST(a_size_that_overflows_has_no_mapping)
{
    size_t bytes;
    ck_assert(!memrt__warm_bytes(SIZE_MAX, &bytes));
    ck_assert(!memrt__warm_bytes(SIZE_MAX - 4096, &bytes));
    ck_assert(!memrt__warm_bytes(SIZE_MAX - 3 * 4096, &bytes));
}

TEST(a_mapping_given_back_is_taken_again_by_one_of_its_size)
{
    begin();
    size_t bytes = bytes_for(3 * MIB);
    void *mapping = take(bytes);
    memrt__warm_give(&memrt__warm_shared, mapping, bytes);
    ck_assert_uint_eq(memrt__warm_cached(&memrt__warm_shared), bytes);
    size_t maps = kernel_calls(KERNEL_MAP);
    ck_assert_ptr_eq(take(bytes), mapping);
    ck_assert_uint_eq(kernel_calls(KERNEL_MAP), maps);
    ck_assert_uint_eq(memrt__warm_cached(&memrt__warm_shared), 0);
    memrt__warm_give(&memrt__warm_shared, mapping, bytes);
    end();
}

TEST(a_mapping_is_taken_again_only_where_it_is_aligned_as_asked)
{
    begin();
    size_t bytes = bytes_for(2 * MIB), align = 64 * MIB;
    void *mappings[4];
    for (size_t i = 0; i < 4; i++) {
        mappings[i] = take(bytes);
    }
    for (size_t i = 0; i < 4; i++) {
        memrt__warm_give(&memrt__warm_shared, mappings[i], bytes);
    }
    void *aligned = memrt__warm_take(&memrt__warm_shared, bytes, align, false);
    ck_assert_ptr_nonnull(aligned);
    ck_assert_uint_eq((uintptr_t)aligned % align, 0);
    memrt__warm_give(&memrt__warm_shared, aligned, bytes);
    ck_assert_ptr_eq(memrt__warm_take(&memrt__warm_shared, bytes, align, false), aligned);
    memrt__warm_give(&memrt__warm_shared, aligned, bytes);
    end();
}

static void soil_and_give(char *mapping, size_t bytes)
{
    memset(mapping, 0xEE, bytes);
    memrt__warm_give(&memrt__warm_shared, mapping, bytes);
}

TEST(zeroed_mappings_are_zero_warm_or_fresh)
{
    begin();
    size_t sizes[] = {2 * MIB, 5 * MIB, 31 * MIB, 33 * MIB};
    for (size_t i = 0; i < 4; i++) {
        size_t bytes = bytes_for(sizes[i]);
        for (int round = 0; round < 2; round++) {
            char *mapping = memrt__warm_take(&memrt__warm_shared, bytes, 64, true);
            ck_assert_ptr_nonnull(mapping);
            ck_assert(pattern_is_zero(mapping, bytes));
            soil_and_give(mapping, bytes);
        }
    }
    end();
}

TEST(a_large_mapping_is_zeroed_by_giving_back_its_pages_and_nothing_else)
{
    begin();
    size_t bytes = bytes_for(40 * MIB);
    char *mapping = take(bytes);
    soil_and_give(mapping, bytes);
    size_t resident = memrt__os_resident(), maps = kernel_calls(KERNEL_MAP);
    ck_assert_ptr_eq(memrt__warm_take(&memrt__warm_shared, bytes, 64, true), mapping);
    ck_assert_uint_eq(kernel_calls(KERNEL_MAP), maps);
    ck_assert_uint_lt(memrt__os_resident() + 30 * MIB, resident);
    ck_assert(pattern_is_zero(mapping, bytes));
    memrt__warm_give(&memrt__warm_shared, mapping, bytes);
    end();
}

TEST(a_large_mapping_whose_pages_the_system_does_not_take_is_zeroed_by_hand)
{
    begin();
    size_t bytes = bytes_for(40 * MIB);
    char *mapping = take(bytes);
    soil_and_give(mapping, bytes);
    kernel_refuse(KERNEL_DISCARD, 0, SIZE_MAX);
    ck_assert_ptr_eq(memrt__warm_take(&memrt__warm_shared, bytes, 64, true), mapping);
    ck_assert(pattern_is_zero(mapping, bytes));
    kernel_obey();
    memrt__warm_give(&memrt__warm_shared, mapping, bytes);
    end();
}

TEST(mappings_of_two_sizes_that_take_turns_stay_warm_where_the_process_is_large)
{
    begin();
    size_t share = 5 * MIB * MEMRT__SPARE_SHARE;
    char *others = memrt__os_map(share, 0, 1);
    ck_assert_ptr_nonnull(others);
    memset(others, 1, share);
    size_t bytes[] = {bytes_for(4 * MIB), bytes_for(3 * MIB)};
    memrt__spare_look(memrt__os_now_ns() + 2 * MEMRT__SPARE_NS);
    size_t maps = kernel_calls(KERNEL_MAP);
    for (int turn = 0; turn < 6; turn++) {
        void *mapping = take(bytes[turn % 2]);
        memrt__warm_give(&memrt__warm_shared, mapping, bytes[turn % 2]);
    }
    ck_assert_uint_eq(kernel_calls(KERNEL_MAP), maps + 2);
    memrt__os_unmap(others, share);
    end();
}

/// Mappings come, grow, shrink and go at random; the most that was in use is followed by hand.
TEST_EACH(what_is_kept_is_no_more_than_what_was_in_use_leaves_and_what_is_spare, 4)
{
    enum { OWN = 12 };
    begin();
    unsigned seed = (unsigned)index + 1;
    char *mappings[OWN] = {NULL};
    size_t bytes[OWN] = {0}, in_use = 0, most = 0, spare = memrt__spare();
    for (int step = 0; step < 1500; step++) {
        size_t i = (size_t)rand_r(&seed) % OWN;
        size_t want = bytes_for(MIB + (size_t)rand_r(&seed) % (6 * MIB));
        char *resized;
        if (mappings[i] == NULL) {
            mappings[i] = take(want);
            bytes[i] = want;
            in_use += want;
        } else if (rand_r(&seed) % 3 == 0) {
            resized = memrt__warm_resize(&memrt__warm_shared, mappings[i], bytes[i], want, 64);
            if (resized != NULL) {
                mappings[i] = resized;
                in_use += want - bytes[i];
                bytes[i] = want;
            }
        } else {
            memrt__warm_give(&memrt__warm_shared, mappings[i], bytes[i]);
            in_use -= bytes[i];
            mappings[i] = NULL;
        }
        most = memrt__size_max(most, in_use);
        spare = memrt__size_max(spare, memrt__spare());
        ck_assert_uint_le(memrt__warm_cached(&memrt__warm_shared) + in_use, most + spare);
    }
    for (size_t i = 0; i < OWN; i++) {
        if (mappings[i] != NULL) {
            memrt__warm_give(&memrt__warm_shared, mappings[i], bytes[i]);
        }
    }
    end();
}

TEST(a_request_that_was_refused_does_not_count_as_memory_that_was_in_use)
{
    begin();
    size_t small = bytes_for(4 * MIB), large = bytes_for(6 * MIB), huge = bytes_for(1000 * MIB);
    void *first = take(small);
    kernel_refuse(KERNEL_MAP, 0, SIZE_MAX);
    ck_assert_ptr_null(memrt__warm_take(&memrt__warm_shared, huge, 64, false));
    ck_assert_ptr_null(memrt__warm_take(&memrt__warm_shared, huge, 64, true));
    kernel_obey();
    memrt__warm_give(&memrt__warm_shared, first, small);
    ck_assert_uint_eq(memrt__warm_cached(&memrt__warm_shared), small);
    void *second = take(large);
    ck_assert_uint_eq(memrt__warm_cached(&memrt__warm_shared),
                      0); /* both together would be more than ever */
    memrt__warm_give(&memrt__warm_shared, second, large);
    ck_assert_uint_eq(memrt__warm_cached(&memrt__warm_shared), large);
    end();
}

TEST(what_is_kept_goes_back_before_a_request_is_refused)
{
    begin();
    size_t kept = bytes_for(4 * MIB), asked = bytes_for(2 * MIB);
    void *first = take(kept), *second = take(kept);
    memrt__warm_give(&memrt__warm_shared, first, kept);
    memrt__warm_give(&memrt__warm_shared, second, kept);
    kernel_refuse(KERNEL_MAP, 0, 1);
    void *mapping = take(asked);
    ck_assert_uint_eq(memrt__warm_cached(&memrt__warm_shared), 0);
    memrt__warm_give(&memrt__warm_shared, mapping, asked);
    end();
}

TEST(a_mapping_that_the_system_does_not_unmap_is_kept_without_its_pages_and_tried_again)
{
    begin();
    size_t bytes = bytes_for(3 * MIB), larger = bytes_for(5 * MIB);
    void *mapping = take(bytes);
    memset(mapping, 0xEE, bytes);
    memrt__warm_give(&memrt__warm_shared, mapping, bytes);
    kernel_refuse(KERNEL_UNMAP, 0, SIZE_MAX);
    size_t discards = kernel_calls(KERNEL_DISCARD);
    ck_assert_uint_eq(memrt__warm_purge(&memrt__warm_shared, UINT64_MAX), 0);
    ck_assert_uint_eq(memrt__warm_cached(&memrt__warm_shared), bytes);
    ck_assert_uint_eq(kernel_calls(KERNEL_DISCARD), discards + 1);
    void *other = take(larger); /* for which the one kept should have gone */
    memrt__warm_give(&memrt__warm_shared, other, larger);
    ck_assert_ptr_eq(memrt__warm_take(&memrt__warm_shared, bytes, 64, true), mapping);
    ck_assert(pattern_is_zero(mapping, bytes));
    memset(mapping, 0xEE, bytes);
    memrt__warm_give(&memrt__warm_shared, mapping, bytes);
    kernel_obey();
    size_t kept = memrt__warm_cached(&memrt__warm_shared);
    ck_assert_uint_eq(memrt__warm_purge(&memrt__warm_shared, UINT64_MAX), kept);
    end();
}

TEST(a_resize_that_the_system_refuses_changes_nothing)
{
    begin();
    size_t bytes = bytes_for(2 * MIB), more = bytes_for(9 * MIB), less = bytes_for(MIB + 1);
    void *mapping = take(bytes);
    pattern_write(mapping, bytes, 5);
    kernel_refuse(KERNEL_REMAP, 0, SIZE_MAX);
    ck_assert_ptr_null(memrt__warm_resize(&memrt__warm_shared, mapping, bytes, more, 64));
    ck_assert_ptr_null(memrt__warm_resize(&memrt__warm_shared, mapping, bytes, less, 64));
    ck_assert(pattern_holds(mapping, bytes, 5));
    memrt__warm_give(&memrt__warm_shared, mapping, bytes);
    ck_assert_uint_eq(memrt__warm_cached(&memrt__warm_shared), bytes);
    end();
}

TEST(a_mapping_that_shrinks_makes_none_go_that_is_kept)
{
    begin();
    size_t large = bytes_for(6 * MIB), less = bytes_for(5 * MIB), other = bytes_for(3 * MIB);
    void *mapping = take(large), *second = take(other);
    memrt__warm_give(&memrt__warm_shared, second, other);
    ck_assert_ptr_eq(memrt__warm_resize(&memrt__warm_shared, mapping, large, less, 64), mapping);
    ck_assert_uint_eq(memrt__warm_cached(&memrt__warm_shared), other);
    memrt__warm_give(&memrt__warm_shared, mapping, less);
    ck_assert_uint_eq(memrt__warm_cached(&memrt__warm_shared), other + less);
    end();
}

TEST(no_more_is_kept_than_the_limit_and_nothing_where_the_decay_is_zero)
{
    begin();
    size_t bytes = bytes_for(3 * MIB);
    void *first = take(bytes), *second = take(bytes);
    memrt__options.cache_limit = bytes;
    memrt__warm_give(&memrt__warm_shared, first, bytes);
    memrt__warm_give(&memrt__warm_shared, second, bytes);
    ck_assert_uint_eq(memrt__warm_cached(&memrt__warm_shared), bytes);
    memrt__options.cache_limit = SIZE_MAX;
    memrt__options.decay = 0;
    memrt__warm_give(&memrt__warm_shared, take(bytes), bytes);
    ck_assert_uint_eq(memrt__warm_cached(&memrt__warm_shared), 0);
    end();
}

TEST(a_purge_takes_what_came_before_a_moment_and_lets_the_rest_stay)
{
    begin();
    size_t bytes = bytes_for(2 * MIB);
    void *early = take(bytes), *late = take(bytes);
    memrt__warm_give(&memrt__warm_shared, early, bytes);
    uint64_t moment = memrt__os_now_ns() + 1;
    while (memrt__os_now_ns() < moment) {
    }
    memrt__warm_give(&memrt__warm_shared, late, bytes);
    ck_assert_uint_eq(memrt__warm_purge(&memrt__warm_shared, moment), bytes);
    ck_assert_uint_eq(memrt__warm_cached(&memrt__warm_shared), bytes);
    ck_assert_ptr_eq(take(bytes), late);
    memrt__warm_give(&memrt__warm_shared, late, bytes);
    end();
}

static memrt__warm_t *new_warm(size_t cache_limit, size_t decay)
{
    memrt__limits_t limits = {MEMRT__INHERIT, cache_limit, decay};
    memrt__warm_t *warm = memrt__warm_new(&limits);
    ck_assert_ptr_nonnull(warm);
    return warm;
}

TEST(one_that_keeps_nothing_has_nobody_look_more_often)
{
    suite_set_decay(MEMRT__DECAY_NEVER);
    memrt__warm_t *none = new_warm(MEMRT__INHERIT, 0), *like_all = new_warm(0, MEMRT__INHERIT);
    ck_assert_uint_eq(memrt__load_relaxed(&memrt__warm_shortest), MEMRT__DECAY_NEVER);
    memrt__warm_t *soon = new_warm(MEMRT__INHERIT, 70);
    ck_assert_uint_eq(memrt__load_relaxed(&memrt__warm_shortest), 70);
    memrt__warm_delete(soon);
    ck_assert_uint_eq(memrt__load_relaxed(&memrt__warm_shortest), MEMRT__DECAY_NEVER);
    memrt__warm_delete(none);
    memrt__warm_delete(like_all);
}

/// Take `count` mappings and give them back, so that as much may be kept.
static void fill(memrt__warm_t *warm, size_t bytes, size_t count)
{
    void *mappings[8];
    for (size_t i = 0; i < count; i++) {
        mappings[i] = memrt__warm_take(warm, bytes, 64, false);
        ck_assert_ptr_nonnull(mappings[i]);
    }
    for (size_t i = 0; i < count; i++) {
        memrt__warm_give(warm, mappings[i], bytes);
    }
}

TEST(mappings_are_kept_apart_and_go_with_those_who_keep_them)
{
    begin();
    size_t bytes = bytes_for(3 * MIB);
    memrt__warm_t *one = new_warm(MEMRT__INHERIT, MEMRT__INHERIT);
    memrt__warm_t *other = new_warm(MEMRT__INHERIT, MEMRT__INHERIT);
    fill(one, bytes, 1);
    size_t maps = kernel_calls(KERNEL_MAP), unmaps = kernel_calls(KERNEL_UNMAP);
    fill(other, bytes, 1);
    ck_assert_uint_eq(kernel_calls(KERNEL_MAP), maps + 1);
    fill(one, bytes, 1);
    ck_assert_uint_eq(kernel_calls(KERNEL_MAP), maps + 1);
    ck_assert_uint_eq(memrt__warm_cached(one), bytes);
    memrt__warm_delete(one);
    ck_assert_uint_eq(kernel_calls(KERNEL_UNMAP), unmaps + 1);
    ck_assert_uint_eq(memrt__warm_cached(other), bytes);
    memrt__warm_delete(other);
    end();
}

TEST(one_that_is_closed_gives_back_what_it_has_and_what_comes)
{
    begin();
    size_t bytes = bytes_for(3 * MIB);
    memrt__warm_t *warm = new_warm(SIZE_MAX, MEMRT__DECAY_NEVER);
    void *mapping = memrt__warm_take(warm, bytes, 64, false);
    fill(warm, bytes, 2);
    memrt__warm_close(warm);
    ck_assert_uint_eq(memrt__warm_cached(warm), 0);
    memrt__warm_give(warm, mapping, bytes);
    ck_assert_uint_eq(memrt__warm_cached(warm), 0);
    memrt__warm_delete(warm);
    end();
}

TEST(the_limit_of_the_process_is_for_all_together_and_holds_as_soon_as_it_is_lower)
{
    begin();
    size_t bytes = bytes_for(3 * MIB);
    memrt__warm_t *one = new_warm(SIZE_MAX, MEMRT__INHERIT);
    memrt__warm_t *other = new_warm(2 * bytes, MEMRT__INHERIT);
    fill(one, bytes, 4);
    fill(other, bytes, 4);
    fill(&memrt__warm_shared, bytes, 1);
    ck_assert_uint_eq(memrt__warm_cached(one), 4 * bytes);
    ck_assert_uint_eq(memrt__warm_cached(other), 2 * bytes);
    ck_assert_uint_eq(memrt__warm_cached(&memrt__warm_shared), bytes);
    memrt__options.cache_limit = 3 * bytes;
    memrt__warm_trim();
    ck_assert_uint_eq(memrt__warm_cached(&memrt__warm_shared) + memrt__warm_cached(one) +
                          memrt__warm_cached(other),
                      3 * bytes);
    fill(one, bytes, 4);
    fill(&memrt__warm_shared, bytes, 2);
    ck_assert_uint_le(memrt__warm_cached(&memrt__warm_shared) + memrt__warm_cached(one) +
                          memrt__warm_cached(other),
                      3 * bytes);
    memrt__options.cache_limit = SIZE_MAX;
    memrt__warm_delete(one);
    memrt__warm_delete(other);
    end();
}

TEST(each_has_the_decay_that_it_chose_or_that_of_the_process)
{
    begin();
    size_t bytes = bytes_for(3 * MIB);
    memrt__warm_t *shortly = new_warm(SIZE_MAX, 10), *ever = new_warm(SIZE_MAX, SIZE_MAX);
    ck_assert_uint_eq(memrt__load_relaxed(&memrt__warm_shortest), 10);
    fill(shortly, bytes, 1);
    fill(ever, bytes, 1);
    fill(&memrt__warm_shared, bytes, 1);
    ck_assert_uint_eq(memrt__warm_aging(), bytes);
    uint64_t now = memrt__os_now_ns(), ms = 1000000;
    ck_assert_uint_eq(memrt__warm_purge_old(now + 20 * ms), bytes);
    ck_assert_uint_eq(memrt__warm_cached(shortly), 0);
    ck_assert_uint_eq(memrt__warm_purge_old(now + 1000 * ms), 0);
    suite_set_decay(500);
    ck_assert_uint_eq(memrt__warm_aging(), bytes);
    ck_assert_uint_eq(memrt__warm_purge_old(now + 1000 * ms), bytes);
    ck_assert_uint_eq(memrt__warm_cached(ever), bytes);
    ck_assert_uint_eq(memrt__warm_purge_all(), bytes);
    memrt__warm_delete(shortly);
    memrt__warm_delete(ever);
    ck_assert_uint_eq(memrt__load_relaxed(&memrt__warm_shortest), MEMRT__DECAY_NEVER);
    end();
}

/// How the mapping that is taken next is advised.
static advice_t advice_of_next(memrt__warm_t *warm, size_t bytes)
{
    void *mapping = memrt__warm_take(warm, bytes, 64, false);
    ck_assert_ptr_nonnull(mapping);
    advice_t advice = advice_at(mapping);
    memrt__warm_give(warm, mapping, bytes);
    return advice;
}

static void set_mode(memrt__huge_t mode)
{
    memrt__options.huge_pages = mode;
    memrt__warm_readvise();
}

TEST(a_mapping_that_is_reused_has_the_advice_of_the_mode_by_then)
{
    begin();
    size_t bytes = bytes_for(8 * MIB);
    void *held = take(bytes);
    set_mode(MEMRT__HUGE_LARGE);
    for (int round = 0; round < 2 && advice_is_taken(); round++) {
        ck_assert_int_eq(advice_of_next(&memrt__warm_shared, bytes), ADVICE_HUGE);
        set_mode(MEMRT__HUGE_OFF);
        ck_assert_int_ne(advice_of_next(&memrt__warm_shared, bytes), ADVICE_HUGE);
        set_mode(MEMRT__HUGE_ADVISE);
    }
    set_mode(MEMRT__HUGE_OFF);
    memrt__warm_purge(&memrt__warm_shared, UINT64_MAX);
    memrt__warm_give(&memrt__warm_shared, held, bytes); /* made before the mode was changed */
    ck_assert_int_ne(advice_of_next(&memrt__warm_shared, bytes), ADVICE_HUGE);
    end();
}

TEST(advice_that_is_refused_takes_no_mapping_away)
{
    begin();
    size_t bytes = bytes_for(8 * MIB);
    void *mapping = take(bytes);
    memrt__warm_give(&memrt__warm_shared, mapping, bytes);
    set_mode(MEMRT__HUGE_OFF);
    kernel_refuse(KERNEL_ADVISE, 0, SIZE_MAX);
    size_t advices = kernel_calls(KERNEL_ADVISE);
    ck_assert_ptr_eq(take(bytes), mapping);
    ck_assert_uint_eq(kernel_calls(KERNEL_ADVISE), advices + 1);
    pattern_write(mapping, bytes, 1);
    memrt__warm_give(&memrt__warm_shared, mapping, bytes);
    end();
}

static void churn(size_t index, void *context)
{
    (void)context;
    for (unsigned round = 0; round < 200; round++) {
        size_t bytes;
        REQUIRE(memrt__warm_bytes(MIB + (round * 31 + index) % 8 * MIB / 2, &bytes));
        size_t *mapping = memrt__warm_take(&memrt__warm_shared, bytes, 64, round % 5 == 0);
        REQUIRE(mapping != NULL);
        REQUIRE(round % 5 != 0 || (mapping[0] == 0 && mapping[bytes / sizeof(size_t) - 1] == 0));
        mapping[0] = mapping[bytes / sizeof(size_t) - 1] = index * 1000 + round;
        if (round % 16 == 0) {
            memrt__warm_purge(&memrt__warm_shared, UINT64_MAX);
        }
        REQUIRE(mapping[0] == index * 1000 + round);
        REQUIRE(mapping[bytes / sizeof(size_t) - 1] == index * 1000 + round);
        memrt__warm_give(&memrt__warm_shared, mapping, bytes);
    }
}

TEST(threads_never_have_a_mapping_in_common)
{
    begin();
    crew_run(4, churn, NULL);
    end();
}

TEST(mappings_go_when_spans_need_what_the_process_had)
{
    begin();
    size_t bytes = bytes_for(4 * MIB);
    void *mapping = take(bytes);
    memrt__warm_give(&memrt__warm_shared, mapping, bytes);
    ck_assert_uint_eq(memrt__warm_cached(&memrt__warm_shared), bytes);
    memrt__span_t *span = memrt__pages_take(MIB / MEMRT__UNIT);
    ck_assert_ptr_nonnull(span);
    ck_assert_uint_le(MIB + memrt__warm_cached(&memrt__warm_shared), bytes + memrt__spare());
    memrt__pages_give(span);
    memrt__pages_purge(true);
    end();
}

TEST(free_pages_go_when_a_mapping_needs_what_the_process_had)
{
    begin();
    memrt__span_t *span = memrt__pages_take(MEMRT__SPAN_MAX / MEMRT__UNIT);
    ck_assert_ptr_nonnull(span);
    memrt__pages_give(span);
    size_t kept = memrt__pages_cached();
    ck_assert_uint_ge(kept, MEMRT__SPAN_MAX);
    size_t bytes = bytes_for(64 * MIB);
    void *mapping = take(bytes);
    ck_assert_uint_eq(memrt__pages_cached(), 0);
    memrt__warm_give(&memrt__warm_shared, mapping, bytes);
    end();
}
