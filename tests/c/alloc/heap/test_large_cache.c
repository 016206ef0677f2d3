/// Tests of the large-object cache.

#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/pattern.h"
#include "runtime/alloc/allocator.h"
#include "runtime/alloc/heap/large_cache.h"
#include "runtime/alloc/heap/large_cache_purge.h"
#include "runtime/alloc/heap/pages/page_heap.h"
#include "runtime/alloc/heap/retention_budget.h"
#include "runtime/base/atomics.h"
#include "runtime/base/size.h"
#include "runtime/config/options.h"
#include "runtime/os/os.h"
#include "support/advice.h"
#include "support/crew.h"
#include "support/kernel.h"

#define MIB ((size_t)1 << 20)

static void empty_cache(void)
{
    suite_set_decay(MEMRT__DECAY_NEVER);
    memrt__options.huge_pages = MEMRT__HUGE_LARGE;
    memrt__allocator_release_unused(&memrt__heap_allocator);
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared), 0);
}

static size_t get_mapping_bytes(size_t size)
{
    size_t bytes;
    ck_assert(memrt__large_cache_bytes(size, &bytes));
    return bytes;
}

static void *take_mapping(size_t bytes)
{
    void *mapping = memrt__large_cache_take(&memrt__large_cache_shared, bytes, 64, false);
    ck_assert_ptr_nonnull(mapping);
    return mapping;
}

static void expect_empty_cache(void)
{
    kernel_obey();
    memrt__large_cache_purge(&memrt__large_cache_shared, UINT64_MAX);
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared), 0);
}

TEST(mapping_is_whole_pages_with_bounded_waste)
{
    size_t page = memrt__os_page_size();
    for (size_t size = 1; size < (size_t)1 << 50; size += 1 + size / 3) {
        size_t bytes = get_mapping_bytes(size);
        ck_assert_uint_ge(bytes, size);
        ck_assert_uint_eq(bytes % page, 0);
        ck_assert_uint_le(bytes - size, size / 8 + 2 * page);
    }
}

TEST(overflowing_size_has_no_mapping_size)
{
    size_t bytes;
    ck_assert(!memrt__large_cache_bytes(SIZE_MAX, &bytes));
    ck_assert(!memrt__large_cache_bytes(SIZE_MAX - 4096, &bytes));
    ck_assert(!memrt__large_cache_bytes(SIZE_MAX - 3 * 4096, &bytes));
}

TEST(returned_mapping_is_reused_for_equal_size)
{
    empty_cache();
    size_t bytes = get_mapping_bytes(3 * MIB);
    void *mapping = take_mapping(bytes);
    memrt__large_cache_give(&memrt__large_cache_shared, mapping, bytes);
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared), bytes);
    size_t maps = kernel_calls(KERNEL_MAP);
    ck_assert_ptr_eq(take_mapping(bytes), mapping);
    ck_assert_uint_eq(kernel_calls(KERNEL_MAP), maps);
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared), 0);
    memrt__large_cache_give(&memrt__large_cache_shared, mapping, bytes);
    expect_empty_cache();
}

TEST(mapping_is_reused_only_with_the_requested_alignment)
{
    empty_cache();
    size_t bytes = get_mapping_bytes(2 * MIB), align = 64 * MIB;
    void *mappings[4];
    for (size_t i = 0; i < 4; i++) {
        mappings[i] = take_mapping(bytes);
    }
    for (size_t i = 0; i < 4; i++) {
        memrt__large_cache_give(&memrt__large_cache_shared, mappings[i], bytes);
    }
    void *aligned = memrt__large_cache_take(&memrt__large_cache_shared, bytes, align, false);
    ck_assert_ptr_nonnull(aligned);
    ck_assert_uint_eq((uintptr_t)aligned % align, 0);
    memrt__large_cache_give(&memrt__large_cache_shared, aligned, bytes);
    ck_assert_ptr_eq(memrt__large_cache_take(&memrt__large_cache_shared, bytes, align, false),
                     aligned);
    memrt__large_cache_give(&memrt__large_cache_shared, aligned, bytes);
    expect_empty_cache();
}

static void write_and_give_mapping(char *mapping, size_t bytes)
{
    memset(mapping, 0xEE, bytes);
    memrt__large_cache_give(&memrt__large_cache_shared, mapping, bytes);
}

TEST(zeroed_mappings_are_zero_cached_or_fresh)
{
    empty_cache();
    size_t sizes[] = {2 * MIB, 5 * MIB, 31 * MIB, 33 * MIB};
    for (size_t i = 0; i < 4; i++) {
        size_t bytes = get_mapping_bytes(sizes[i]);
        for (int round = 0; round < 2; round++) {
            char *mapping = memrt__large_cache_take(&memrt__large_cache_shared, bytes, 64, true);
            ck_assert_ptr_nonnull(mapping);
            ck_assert(pattern_is_zero(mapping, bytes));
            write_and_give_mapping(mapping, bytes);
        }
    }
    expect_empty_cache();
}

TEST_EACH(large_cached_mapping_is_zero_with_or_without_discard, 2)
{
    bool discards = index == 0;
    empty_cache();
    size_t bytes = get_mapping_bytes(40 * MIB);
    char *mapping = take_mapping(bytes);
    write_and_give_mapping(mapping, bytes);
    size_t resident = memrt__os_resident(), maps = kernel_calls(KERNEL_MAP);
    if (!discards) {
        kernel_refuse(KERNEL_DISCARD, 0, SIZE_MAX);
    }
    ck_assert_ptr_eq(memrt__large_cache_take(&memrt__large_cache_shared, bytes, 64, true), mapping);
    ck_assert_uint_eq(kernel_calls(KERNEL_MAP), maps);
    ck_assert(!discards || memrt__os_resident() + 30 * MIB < resident);
    ck_assert(pattern_is_zero(mapping, bytes));
    kernel_obey();
    memrt__large_cache_give(&memrt__large_cache_shared, mapping, bytes);
    expect_empty_cache();
}

TEST(alternating_sizes_stay_cached_in_a_large_process)
{
    empty_cache();
    size_t share = 5 * MIB * MEMRT__RETENTION_SHARE;
    char *others = memrt__os_map(share, 0, 1);
    ck_assert_ptr_nonnull(others);
    memset(others, 1, share);
    size_t bytes[] = {get_mapping_bytes(4 * MIB), get_mapping_bytes(3 * MIB)};
    memrt__retention_budget_update(memrt__os_now_ns() + 2 * MEMRT__RETENTION_NS);
    size_t maps = kernel_calls(KERNEL_MAP);
    for (int turn = 0; turn < 6; turn++) {
        void *mapping = take_mapping(bytes[turn % 2]);
        memrt__large_cache_give(&memrt__large_cache_shared, mapping, bytes[turn % 2]);
    }
    ck_assert_uint_eq(kernel_calls(KERNEL_MAP), maps + 2);
    memrt__os_unmap(others, share);
    expect_empty_cache();
}

/// Take, resize and give mappings at random. The maximum in use is computed here.
TEST_EACH(cached_and_used_bytes_stay_within_peak_plus_budget, 4)
{
    enum { OWN = 12 };
    empty_cache();
    unsigned seed = (unsigned)index + 1;
    char *mappings[OWN] = {NULL};
    size_t bytes[OWN] = {0}, in_use = 0, most = 0, spare = memrt__retention_budget();
    for (int step = 0; step < 1500; step++) {
        size_t i = (size_t)rand_r(&seed) % OWN;
        size_t want = get_mapping_bytes(MIB + (size_t)rand_r(&seed) % (6 * MIB));
        char *resized;
        if (mappings[i] == NULL) {
            mappings[i] = take_mapping(want);
            bytes[i] = want;
            in_use += want;
        } else if (rand_r(&seed) % 3 == 0) {
            resized = memrt__large_cache_resize(&memrt__large_cache_shared, mappings[i], bytes[i],
                                                want, 64);
            if (resized != NULL) {
                mappings[i] = resized;
                in_use += want - bytes[i];
                bytes[i] = want;
            }
        } else {
            memrt__large_cache_give(&memrt__large_cache_shared, mappings[i], bytes[i]);
            in_use -= bytes[i];
            mappings[i] = NULL;
        }
        most = memrt__size_max(most, in_use);
        spare = memrt__size_max(spare, memrt__retention_budget());
        ck_assert_uint_le(memrt__large_cache_cached(&memrt__large_cache_shared) + in_use,
                          most + spare);
    }
    for (size_t i = 0; i < OWN; i++) {
        if (mappings[i] != NULL) {
            memrt__large_cache_give(&memrt__large_cache_shared, mappings[i], bytes[i]);
        }
    }
    expect_empty_cache();
}

TEST(refused_request_does_not_raise_the_high_water_mark)
{
    empty_cache();
    size_t small = get_mapping_bytes(4 * MIB), large = get_mapping_bytes(6 * MIB),
           huge = get_mapping_bytes(1000 * MIB);
    void *first = take_mapping(small);
    kernel_refuse(KERNEL_MAP, 0, SIZE_MAX);
    ck_assert_ptr_null(memrt__large_cache_take(&memrt__large_cache_shared, huge, 64, false));
    ck_assert_ptr_null(memrt__large_cache_take(&memrt__large_cache_shared, huge, 64, true));
    kernel_obey();
    memrt__large_cache_give(&memrt__large_cache_shared, first, small);
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared), small);
    void *second = take_mapping(large);
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared),
                      0); /* both together would exceed the former maximum */
    memrt__large_cache_give(&memrt__large_cache_shared, second, large);
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared), large);
    expect_empty_cache();
}

TEST(cache_is_emptied_before_a_request_is_refused)
{
    empty_cache();
    size_t kept = get_mapping_bytes(4 * MIB), asked = get_mapping_bytes(2 * MIB);
    void *first = take_mapping(kept), *second = take_mapping(kept);
    memrt__large_cache_give(&memrt__large_cache_shared, first, kept);
    memrt__large_cache_give(&memrt__large_cache_shared, second, kept);
    kernel_refuse(KERNEL_MAP, 0, 1);
    void *mapping = take_mapping(asked);
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared), 0);
    memrt__large_cache_give(&memrt__large_cache_shared, mapping, asked);
    expect_empty_cache();
}

TEST(refused_unmap_keeps_mapping_without_pages_for_retry)
{
    empty_cache();
    size_t bytes = get_mapping_bytes(3 * MIB), larger = get_mapping_bytes(5 * MIB);
    void *mapping = take_mapping(bytes);
    memset(mapping, 0xEE, bytes);
    memrt__large_cache_give(&memrt__large_cache_shared, mapping, bytes);
    kernel_refuse(KERNEL_UNMAP, 0, SIZE_MAX);
    size_t discards = kernel_calls(KERNEL_DISCARD);
    ck_assert_uint_eq(memrt__large_cache_purge(&memrt__large_cache_shared, UINT64_MAX), 0);
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared), bytes);
    ck_assert_uint_eq(kernel_calls(KERNEL_DISCARD), discards + 1);
    void *other = take_mapping(larger); /* would normally evict the cached mapping */
    memrt__large_cache_give(&memrt__large_cache_shared, other, larger);
    ck_assert_ptr_eq(memrt__large_cache_take(&memrt__large_cache_shared, bytes, 64, true), mapping);
    ck_assert(pattern_is_zero(mapping, bytes));
    memset(mapping, 0xEE, bytes);
    memrt__large_cache_give(&memrt__large_cache_shared, mapping, bytes);
    kernel_obey();
    size_t kept = memrt__large_cache_cached(&memrt__large_cache_shared);
    memrt__large_cache_retry();
    ck_assert_uint_eq(memrt__large_cache_purge(&memrt__large_cache_shared, UINT64_MAX), kept);
    expect_empty_cache();
}

TEST(refused_unmaps_cost_a_call_per_returned_mapping)
{
    enum { ROUNDS = 200 };
    empty_cache();
    /* otherwise the ends of mappings are also unmapped */
    memrt__options.huge_pages = MEMRT__HUGE_OFF;
    size_t unmaps = kernel_calls(KERNEL_UNMAP), discards = kernel_calls(KERNEL_DISCARD);
    kernel_refuse(KERNEL_UNMAP, 0, SIZE_MAX);
    kernel_refuse(KERNEL_DISCARD, 0, SIZE_MAX);
    for (size_t i = 0; i < ROUNDS; i++) {
        size_t bytes = get_mapping_bytes(2 * MIB + i % 10 * MIB);
        memrt__large_cache_give(&memrt__large_cache_shared, take_mapping(bytes), bytes);
        for (int purges = 0; purges < 5; purges++) {
            memrt__large_cache_purge_all();
            memrt__large_cache_trim();
        }
    }
    ck_assert_uint_le(kernel_calls(KERNEL_UNMAP) - unmaps, ROUNDS);
    ck_assert_uint_le(kernel_calls(KERNEL_DISCARD) - discards, ROUNDS);
    ck_assert_uint_gt(memrt__large_cache_cached(&memrt__large_cache_shared), 0);
    ck_assert_uint_eq(memrt__large_cache_aging(), 0);
    memrt__large_cache_retry();
    kernel_obey();
    expect_empty_cache();
}

TEST(refused_resize_changes_nothing)
{
    empty_cache();
    size_t bytes = get_mapping_bytes(2 * MIB), more = get_mapping_bytes(9 * MIB),
           less = get_mapping_bytes(MIB + 1);
    void *mapping = take_mapping(bytes);
    pattern_write(mapping, bytes, 5);
    kernel_refuse(KERNEL_REMAP, 0, SIZE_MAX);
    ck_assert_ptr_null(
        memrt__large_cache_resize(&memrt__large_cache_shared, mapping, bytes, more, 64));
    ck_assert_ptr_null(
        memrt__large_cache_resize(&memrt__large_cache_shared, mapping, bytes, less, 64));
    ck_assert(pattern_holds(mapping, bytes, 5));
    memrt__large_cache_give(&memrt__large_cache_shared, mapping, bytes);
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared), bytes);
    expect_empty_cache();
}

TEST(shrinking_a_mapping_evicts_no_cached_mapping)
{
    empty_cache();
    size_t large = get_mapping_bytes(6 * MIB), less = get_mapping_bytes(5 * MIB),
           other = get_mapping_bytes(3 * MIB);
    void *mapping = take_mapping(large), *second = take_mapping(other);
    memrt__large_cache_give(&memrt__large_cache_shared, second, other);
    ck_assert_ptr_eq(
        memrt__large_cache_resize(&memrt__large_cache_shared, mapping, large, less, 64), mapping);
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared), other);
    memrt__large_cache_give(&memrt__large_cache_shared, mapping, less);
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared), other + less);
    expect_empty_cache();
}

TEST(cache_obeys_its_limit_and_keeps_nothing_with_decay_0)
{
    empty_cache();
    size_t bytes = get_mapping_bytes(3 * MIB);
    void *first = take_mapping(bytes), *second = take_mapping(bytes);
    memrt__options.cache_limit = bytes;
    memrt__large_cache_give(&memrt__large_cache_shared, first, bytes);
    memrt__large_cache_give(&memrt__large_cache_shared, second, bytes);
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared), bytes);
    memrt__options.cache_limit = SIZE_MAX;
    memrt__options.decay = 0;
    memrt__large_cache_give(&memrt__large_cache_shared, take_mapping(bytes), bytes);
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared), 0);
    expect_empty_cache();
}

TEST(purge_removes_only_mappings_older_than_a_time)
{
    empty_cache();
    size_t bytes = get_mapping_bytes(2 * MIB);
    void *early = take_mapping(bytes), *late = take_mapping(bytes);
    memrt__large_cache_give(&memrt__large_cache_shared, early, bytes);
    uint64_t moment = memrt__os_now_ns() + 1;
    while (memrt__os_now_ns() < moment) {
    }
    memrt__large_cache_give(&memrt__large_cache_shared, late, bytes);
    ck_assert_uint_eq(memrt__large_cache_purge(&memrt__large_cache_shared, moment), bytes);
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared), bytes);
    ck_assert_ptr_eq(take_mapping(bytes), late);
    memrt__large_cache_give(&memrt__large_cache_shared, late, bytes);
    expect_empty_cache();
}

static memrt__large_cache_t *create_large_cache(size_t cache_limit, size_t decay)
{
    memrt__limits_t limits = {MEMRT__INHERIT, cache_limit, decay, MEMRT__INHERIT};
    memrt__large_cache_t *cache = memrt__large_cache_new(&limits);
    ck_assert_ptr_nonnull(cache);
    return cache;
}

TEST(cache_that_keeps_nothing_does_not_shorten_any_decay)
{
    suite_set_decay(MEMRT__DECAY_NEVER);
    memrt__large_cache_t *none = create_large_cache(MEMRT__INHERIT, 0),
                         *like_all = create_large_cache(0, MEMRT__INHERIT);
    ck_assert_uint_eq(memrt__load_relaxed(&memrt__large_cache_shortest), MEMRT__DECAY_NEVER);
    memrt__large_cache_t *soon = create_large_cache(MEMRT__INHERIT, 70);
    ck_assert_uint_eq(memrt__load_relaxed(&memrt__large_cache_shortest), 70);
    memrt__large_cache_delete(soon);
    ck_assert_uint_eq(memrt__load_relaxed(&memrt__large_cache_shortest), MEMRT__DECAY_NEVER);
    memrt__large_cache_delete(none);
    memrt__large_cache_delete(like_all);
}

/// Take `count` mappings and give them back, so that the cache may keep as much.
static void fill_cache(memrt__large_cache_t *cache, size_t bytes, size_t count)
{
    void *mappings[8];
    for (size_t i = 0; i < count; i++) {
        mappings[i] = memrt__large_cache_take(cache, bytes, 64, false);
        ck_assert_ptr_nonnull(mappings[i]);
    }
    for (size_t i = 0; i < count; i++) {
        memrt__large_cache_give(cache, mappings[i], bytes);
    }
}

TEST(caches_are_separate_and_unmap_their_mappings_at_delete)
{
    empty_cache();
    size_t bytes = get_mapping_bytes(3 * MIB);
    memrt__large_cache_t *one = create_large_cache(MEMRT__INHERIT, MEMRT__INHERIT);
    memrt__large_cache_t *other = create_large_cache(MEMRT__INHERIT, MEMRT__INHERIT);
    fill_cache(one, bytes, 1);
    size_t maps = kernel_calls(KERNEL_MAP), unmaps = kernel_calls(KERNEL_UNMAP);
    fill_cache(other, bytes, 1);
    ck_assert_uint_eq(kernel_calls(KERNEL_MAP), maps + 1);
    fill_cache(one, bytes, 1);
    ck_assert_uint_eq(kernel_calls(KERNEL_MAP), maps + 1);
    ck_assert_uint_eq(memrt__large_cache_cached(one), bytes);
    memrt__large_cache_delete(one);
    ck_assert_uint_eq(kernel_calls(KERNEL_UNMAP), unmaps + 1);
    ck_assert_uint_eq(memrt__large_cache_cached(other), bytes);
    memrt__large_cache_delete(other);
    expect_empty_cache();
}

TEST(closed_cache_unmaps_cached_and_later_mappings)
{
    empty_cache();
    size_t bytes = get_mapping_bytes(3 * MIB);
    memrt__large_cache_t *cache = create_large_cache(SIZE_MAX, MEMRT__DECAY_NEVER);
    void *mapping = memrt__large_cache_take(cache, bytes, 64, false);
    fill_cache(cache, bytes, 2);
    memrt__large_cache_close(cache);
    ck_assert_uint_eq(memrt__large_cache_cached(cache), 0);
    memrt__large_cache_give(cache, mapping, bytes);
    ck_assert_uint_eq(memrt__large_cache_cached(cache), 0);
    memrt__large_cache_delete(cache);
    expect_empty_cache();
}

TEST(process_cache_limit_applies_to_all_caches_together)
{
    empty_cache();
    size_t bytes = get_mapping_bytes(3 * MIB);
    memrt__large_cache_t *one = create_large_cache(SIZE_MAX, MEMRT__INHERIT);
    memrt__large_cache_t *other = create_large_cache(2 * bytes, MEMRT__INHERIT);
    fill_cache(one, bytes, 4);
    fill_cache(other, bytes, 4);
    fill_cache(&memrt__large_cache_shared, bytes, 1);
    ck_assert_uint_eq(memrt__large_cache_cached(one), 4 * bytes);
    ck_assert_uint_eq(memrt__large_cache_cached(other), 2 * bytes);
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared), bytes);
    memrt__options.cache_limit = 3 * bytes;
    memrt__large_cache_trim();
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared) +
                          memrt__large_cache_cached(one) + memrt__large_cache_cached(other),
                      3 * bytes);
    fill_cache(one, bytes, 4);
    fill_cache(&memrt__large_cache_shared, bytes, 2);
    ck_assert_uint_le(memrt__large_cache_cached(&memrt__large_cache_shared) +
                          memrt__large_cache_cached(one) + memrt__large_cache_cached(other),
                      3 * bytes);
    memrt__options.cache_limit = SIZE_MAX;
    memrt__large_cache_delete(one);
    memrt__large_cache_delete(other);
    expect_empty_cache();
}

TEST(cache_uses_its_own_decay_or_the_process_decay)
{
    empty_cache();
    size_t bytes = get_mapping_bytes(3 * MIB);
    memrt__large_cache_t *shortly = create_large_cache(SIZE_MAX, 10),
                         *ever = create_large_cache(SIZE_MAX, SIZE_MAX);
    ck_assert_uint_eq(memrt__load_relaxed(&memrt__large_cache_shortest), 10);
    fill_cache(shortly, bytes, 1);
    fill_cache(ever, bytes, 1);
    fill_cache(&memrt__large_cache_shared, bytes, 1);
    ck_assert_uint_eq(memrt__large_cache_aging(), bytes);
    uint64_t now = memrt__os_now_ns(), ms = 1000000;
    ck_assert_uint_eq(memrt__large_cache_purge_old(now + 20 * ms), bytes);
    ck_assert_uint_eq(memrt__large_cache_cached(shortly), 0);
    ck_assert_uint_eq(memrt__large_cache_purge_old(now + 1000 * ms), 0);
    suite_set_decay(500);
    ck_assert_uint_eq(memrt__large_cache_aging(), bytes);
    ck_assert_uint_eq(memrt__large_cache_purge_old(now + 1000 * ms), bytes);
    ck_assert_uint_eq(memrt__large_cache_cached(ever), bytes);
    ck_assert_uint_eq(memrt__large_cache_purge_all(), bytes);
    memrt__large_cache_delete(shortly);
    memrt__large_cache_delete(ever);
    ck_assert_uint_eq(memrt__load_relaxed(&memrt__large_cache_shortest), MEMRT__DECAY_NEVER);
    expect_empty_cache();
}

/// Return the advice of the next mapping.
static advice_t read_next_advice(memrt__large_cache_t *cache, size_t bytes)
{
    void *mapping = memrt__large_cache_take(cache, bytes, 64, false);
    ck_assert_ptr_nonnull(mapping);
    advice_t advice = advice_at(mapping);
    memrt__large_cache_give(cache, mapping, bytes);
    return advice;
}

static void set_huge_page_mode(memrt__huge_t mode)
{
    memrt__options.huge_pages = mode;
    memrt__large_cache_readvise();
}

TEST(reused_mapping_has_the_advice_of_the_current_mode)
{
    empty_cache();
    size_t bytes = get_mapping_bytes(8 * MIB);
    void *held = take_mapping(bytes);
    set_huge_page_mode(MEMRT__HUGE_LARGE);
    for (int round = 0; round < 2 && advice_is_taken(); round++) {
        ck_assert_int_eq(read_next_advice(&memrt__large_cache_shared, bytes), ADVICE_HUGE);
        set_huge_page_mode(MEMRT__HUGE_OFF);
        ck_assert_int_ne(read_next_advice(&memrt__large_cache_shared, bytes), ADVICE_HUGE);
        set_huge_page_mode(MEMRT__HUGE_ADVISE);
    }
    set_huge_page_mode(MEMRT__HUGE_OFF);
    memrt__large_cache_purge(&memrt__large_cache_shared, UINT64_MAX);
    memrt__large_cache_give(&memrt__large_cache_shared, held,
                            bytes); /* made before the change of the mode */
    ck_assert_int_ne(read_next_advice(&memrt__large_cache_shared, bytes), ADVICE_HUGE);
    expect_empty_cache();
}

TEST(refused_advice_does_not_prevent_reuse_of_a_mapping)
{
    empty_cache();
    size_t bytes = get_mapping_bytes(8 * MIB);
    void *mapping = take_mapping(bytes);
    memrt__large_cache_give(&memrt__large_cache_shared, mapping, bytes);
    set_huge_page_mode(MEMRT__HUGE_OFF);
    kernel_refuse(KERNEL_ADVISE, 0, SIZE_MAX);
    size_t advices = kernel_calls(KERNEL_ADVISE);
    ck_assert_ptr_eq(take_mapping(bytes), mapping);
    ck_assert_uint_eq(kernel_calls(KERNEL_ADVISE), advices + 1);
    pattern_write(mapping, bytes, 1);
    memrt__large_cache_give(&memrt__large_cache_shared, mapping, bytes);
    expect_empty_cache();
}

static void churn_mappings(size_t index, void *context)
{
    (void)context;
    for (unsigned round = 0; round < 200; round++) {
        size_t bytes;
        REQUIRE(memrt__large_cache_bytes(MIB + (round * 31 + index) % 8 * MIB / 2, &bytes));
        size_t *mapping =
            memrt__large_cache_take(&memrt__large_cache_shared, bytes, 64, round % 5 == 0);
        REQUIRE(mapping != NULL);
        REQUIRE(round % 5 != 0 || (mapping[0] == 0 && mapping[bytes / sizeof(size_t) - 1] == 0));
        mapping[0] = mapping[bytes / sizeof(size_t) - 1] = index * 1000 + round;
        if (round % 16 == 0) {
            memrt__large_cache_purge(&memrt__large_cache_shared, UINT64_MAX);
        }
        REQUIRE(mapping[0] == index * 1000 + round);
        REQUIRE(mapping[bytes / sizeof(size_t) - 1] == index * 1000 + round);
        memrt__large_cache_give(&memrt__large_cache_shared, mapping, bytes);
    }
}

TEST(threads_never_share_a_mapping)
{
    empty_cache();
    crew_run(4, churn_mappings, NULL);
    expect_empty_cache();
}

TEST(growing_spans_evict_cached_mappings)
{
    empty_cache();
    size_t bytes = get_mapping_bytes(4 * MIB);
    void *mapping = take_mapping(bytes);
    memrt__large_cache_give(&memrt__large_cache_shared, mapping, bytes);
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared), bytes);
    bool grew = false;
    memrt__span_t *span = memrt__page_heap_take(MIB / MEMRT__UNIT, &grew);
    ck_assert_ptr_nonnull(span);
    ck_assert(grew);
    memrt__large_cache_make_room();
    ck_assert_uint_le(MIB + memrt__large_cache_cached(&memrt__large_cache_shared),
                      bytes + memrt__retention_budget());
    memrt__page_heap_give(span);
    memrt__page_heap_purge(true);
    expect_empty_cache();
}

TEST(growing_mappings_evict_free_pages)
{
    empty_cache();
    bool grew = false;
    memrt__span_t *span = memrt__page_heap_take(MEMRT__SPAN_MAX / MEMRT__UNIT, &grew);
    ck_assert_ptr_nonnull(span);
    memrt__page_heap_give(span);
    size_t kept = memrt__page_heap_cached();
    ck_assert_uint_ge(kept, MEMRT__SPAN_MAX);
    size_t bytes = get_mapping_bytes(64 * MIB);
    void *mapping = take_mapping(bytes);
    ck_assert_uint_eq(memrt__page_heap_cached(), 0);
    memrt__large_cache_give(&memrt__large_cache_shared, mapping, bytes);
    expect_empty_cache();
}
