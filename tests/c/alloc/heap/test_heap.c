/// Tests of the default allocator, the heap.

#include "support/suite.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "conformance/pattern.h"
#include "runtime/alloc/allocator.h"
#include "runtime/alloc/heap/heap.h"
#include "runtime/alloc/heap/large_cache.h"
#include "runtime/alloc/heap/pages/page_heap.h"
#include "runtime/alloc/heap/retention_budget.h"
#include "runtime/alloc/heap/thread_cache.h"
#include "runtime/base/size.h"
#include "runtime/config/options.h"
#include "runtime/meminfo/block.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"
#include "support/advice.h"
#include "support/books.h"
#include "support/child.h"
#include "support/crew.h"
#include "support/kernel.h"

/* The tests call the heap directly or through a policy for it, because the default policy may have
 * another allocator. */
static const memrt_allocator_t *const pool = &memrt__heap_allocator;

static memrt_policy_t *create_pool_policy(size_t alignment)
{
    memrt_policy_options_t options = {
        .struct_size = sizeof(options), .allocator = pool, .alignment = alignment};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    return policy;
}

static bool has_fast_path_blocks(void)
{
    return !memrt__options.check;
}

static bool is_fast_path_block(const void *data)
{
    return (memrt__block_of(data)->flags & MEMRT__FLAG_FAST) != 0;
}

/// Allocate a first block, so that the thread has a record, a shard, and some room in its gauge.
static void warm_up(memrt_policy_t *policy)
{
    void *data = api->block_alloc(policy, 60000);
    ck_assert_ptr_nonnull(data);
    api->block_free(policy, data, 0);
}

static size_t choose_random_size(unsigned *seed)
{
    size_t most = (size_t)1 << (1 + rand_r(seed) % 22);
    return 1 + (size_t)rand_r(seed) % most;
}

static size_t choose_random_align(unsigned *seed)
{
    return (size_t)1 << (rand_r(seed) % 3 == 0 ? rand_r(seed) % 21 : 6);
}

typedef struct held {
    char *ptr;
    size_t size, align;
} held_t;

static void mark_block(const held_t *held, unsigned seed)
{
    pattern_write(held->ptr, held->size, seed);
}

static void free_held_block(held_t *held, unsigned seed)
{
    if (held->ptr != NULL) {
        REQUIRE(pattern_holds(held->ptr, held->size, seed));
        memrt__allocator_free(pool, held->ptr, held->size, held->align);
        held->ptr = NULL;
    }
}

static void change_block(held_t *held, unsigned mark_seed, unsigned *seed)
{
    if (held->ptr == NULL) {
        bool zeroed = rand_r(seed) % 4 == 0;
        held->size = choose_random_size(seed);
        held->align = choose_random_align(seed);
        held->ptr = memrt__allocator_alloc(pool, held->size, held->align, zeroed);
        REQUIRE(held->ptr != NULL && (uintptr_t)held->ptr % held->align == 0);
        REQUIRE(!zeroed || pattern_is_zero(held->ptr, held->size));
    } else if (rand_r(seed) % 2 == 0) {
        free_held_block(held, mark_seed);
        return;
    } else {
        size_t size = choose_random_size(seed);
        held->ptr = memrt__allocator_realloc(pool, held->ptr, held->size, size, held->align);
        REQUIRE(held->ptr != NULL && (uintptr_t)held->ptr % held->align == 0);
        REQUIRE(pattern_holds(held->ptr, memrt__size_min(held->size, size), mark_seed));
        held->size = size;
    }
    mark_block(held, mark_seed);
}

static void change_blocks_at_random(size_t index, void *context)
{
    enum { OWN = 40 };
    held_t own[OWN] = {{0}};
    unsigned seed = (unsigned)index * 77 + *(const unsigned *)context;
    for (int step = 0; step < 1500; step++) {
        unsigned i = (unsigned)rand_r(&seed) % OWN;
        change_block(&own[i], i, &seed);
        if (step % 200 == 0) {
            memrt__allocator_release_unused(pool);
        }
    }
    for (unsigned i = 0; i < OWN; i++) {
        free_held_block(&own[i], i);
    }
}

TEST_EACH(random_blocks_keep_contents_and_alignment_through_resize, 4)
{
    unsigned seed = (unsigned)index + 1;
    change_blocks_at_random(0, &seed);
}

TEST(blocks_keep_contents_with_threads_and_purger_running)
{
    unsigned seed = 9;
    suite_set_decay(2);
    crew_run(4, change_blocks_at_random, &seed);
}

TEST(release_unused_returns_all_freed_aligned_blocks)
{
    for (size_t align = 64; align <= (size_t)1 << 20; align *= 2) {
        enum { BLOCKS = 5 };
        char *blocks[BLOCKS];
        size_t size = 100;
        suite_set_decay(MEMRT__DECAY_NEVER);
        memrt__allocator_release_unused(pool);
        for (unsigned i = 0; i < BLOCKS; i++) {
            blocks[i] = memrt__allocator_alloc(pool, size, align, false);
            ck_assert_uint_eq((uintptr_t)blocks[i] % align, 0);
            pattern_write(blocks[i], size, i);
        }
        for (unsigned i = 0; i < BLOCKS; i++) {
            ck_assert(pattern_holds(blocks[i], size, i));
            memrt__allocator_free(pool, blocks[i], size, align);
        }
        memrt__allocator_release_unused(pool);
        ck_assert_uint_eq(memrt__allocator_cached(pool), 0); /* all spans are whole again */
    }
}

TEST(zeroed_blocks_of_every_size_class_are_zero_after_reuse)
{
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        size_t size = memrt__class_bytes(class);
        for (int round = 0; round < 4; round++) {
            void *ptr = memrt__allocator_alloc(pool, size, 64, true);
            ck_assert_ptr_nonnull(ptr);
            ck_assert_msg(pattern_is_zero(ptr, size), "class %u, round %d", class, round);
            memset(ptr, 0xEE, size);
            memrt__allocator_free(pool, ptr, size, 64);
            if (round == 1) {
                memrt__allocator_release_unused(pool);
            }
        }
    }
}

TEST(release_unused_returns_all_cached_bytes)
{
    unsigned seed = 4;
    suite_set_decay(MEMRT__DECAY_NEVER);
    change_blocks_at_random(0, &seed);
    ck_assert_uint_gt(memrt__allocator_cached(pool), 0);
    ck_assert_uint_gt(memrt__allocator_release_unused(pool), 0);
    ck_assert_uint_eq(memrt__allocator_cached(pool), 0);
}

static void expect_resize_in_place(size_t size, size_t room)
{
    char *ptr = memrt__allocator_alloc(pool, size, 64, false);
    ck_assert_ptr_nonnull(ptr);
    ck_assert_ptr_eq(memrt__allocator_realloc(pool, ptr, size, room, 64), ptr);
    ck_assert_ptr_eq(memrt__allocator_realloc(pool, ptr, room, size, 64), ptr);
    memrt__allocator_free(pool, ptr, size, 64);
}

TEST(resize_within_size_class_or_mapping_keeps_the_address)
{
    size_t bytes;
    expect_resize_in_place(5000, memrt__class_bytes(memrt__class_of_bytes(5000)));
    ck_assert(memrt__large_cache_bytes((size_t)3 << 20, &bytes));
    expect_resize_in_place((size_t)3 << 20, bytes - MEMRT__START_MAX);
}

/// Allocate blocks of the largest class until the next block needs a new mapping.
static size_t use_up_segment(memrt_policy_t *policy, void **blocks, size_t most)
{
    size_t count = 0;
    kernel_refuse(KERNEL_MAP, 0, SIZE_MAX);
    while (count < most &&
           (blocks[count] = api->block_alloc(policy, MEMRT__CLASS_DATA_MAX)) != NULL) {
        count++;
    }
    ck_assert_uint_lt(count, most);
    return count;
}

static void free_all_blocks(memrt_policy_t *policy, void **blocks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        api->block_free(policy, blocks[i], 0);
    }
}

TEST(refused_requests_change_only_the_failed_counter)
{
    enum { MOST = 300 };
    static void *blocks[MOST];
    memrt_policy_t *policy = create_pool_policy(0);
    size_t large = (size_t)5 << 20;
    api->release_unused();
    void *data = api->block_alloc(policy, 2000), *mapped = api->block_alloc(policy, large);
    pattern_write(data, 2000, 1);
    pattern_write(mapped, large, 2);
    size_t count = use_up_segment(policy, blocks, MOST);
    kernel_refuse(KERNEL_REMAP, 0, SIZE_MAX);
    memrt_stats_t before = stats_of(policy);
    ck_assert_ptr_null(api->block_alloc(policy, MEMRT__CLASS_DATA_MAX));
    ck_assert_ptr_null(api->block_calloc(policy, 1, MEMRT__CLASS_DATA_MAX));
    ck_assert_ptr_null(api->block_alloc(policy, large));
    ck_assert_ptr_null(api->block_calloc(policy, 1, 8 * large));
    ck_assert_ptr_null(api->block_realloc(policy, data, MEMRT__CLASS_DATA_MAX));
    ck_assert_ptr_null(api->block_realloc(policy, data, large));
    ck_assert_ptr_null(api->block_realloc(policy, mapped, 2 * large));
    memrt_stats_t after = stats_of(policy);
    ck_assert_uint_eq(after.failed, before.failed + 7);
    after.failed = before.failed;
    ck_assert_mem_eq(&after, &before, sizeof(after));
    ck_assert(pattern_holds(data, 2000, 1));
    ck_assert(pattern_holds(mapped, large, 2));
    kernel_obey();
    data = api->block_realloc(policy, data, large);
    ck_assert(data != NULL && pattern_holds(data, 2000, 1));
    api->block_free(policy, data, 0);
    api->block_free(policy, mapped, 0);
    free_all_blocks(policy, blocks, count);
    ck_assert_uint_eq(stats_of(policy).live, 0);
    api->policy_release(policy);
}

TEST(large_block_is_copied_when_remap_fails)
{
    memrt_policy_t *policy = create_pool_policy(0);
    size_t sizes[] = {(size_t)2 << 20, (size_t)9 << 20, (size_t)3 << 20};
    void *data = api->block_alloc(policy, sizes[0]);
    kernel_refuse(KERNEL_REMAP, 0, SIZE_MAX);
    for (size_t i = 1; i < 3; i++) {
        pattern_write(data, sizes[i - 1], 3);
        data = api->block_realloc(policy, data, sizes[i]);
        ck_assert_ptr_nonnull(data);
        ck_assert(pattern_holds(data, memrt__size_min(sizes[i - 1], sizes[i]), 3));
    }
    api->block_free(policy, data, 0);
    ck_assert_uint_eq(stats_of(policy).live, 0);
    api->policy_release(policy);
}

TEST(heap_works_when_advice_and_discards_are_refused)
{
    memrt_policy_t *policy = create_pool_policy(0);
    kernel_refuse(KERNEL_ADVISE, 0, SIZE_MAX);
    kernel_refuse(KERNEL_DISCARD, 0, SIZE_MAX);
    kernel_refuse(KERNEL_THREAD, 0, SIZE_MAX);
    for (size_t size = 1000; size < (size_t)64 << 20; size *= 5) {
        for (int round = 0; round < 3; round++) {
            void *data = api->block_calloc(policy, 1, size);
            ck_assert(data != NULL && pattern_is_zero(data, size));
            memset(data, 0xEE, size);
            api->block_free(policy, data, 0);
            api->release_unused();
        }
    }
    api->policy_release(policy);
}

/// Create a policy over the heap with limits of its own, also when the heap is not the default
/// allocator.
static memrt_policy_t *create_limited_policy(const char *cache_limit, const char *decay,
                                             const char *hugepages)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options),
                                      .cache_limit = cache_limit,
                                      .decay = decay,
                                      .hugepages = hugepages};
    bool cached = memrt__options.cache, checked = memrt__options.check;
    memrt_policy_t *policy;
    memrt__options.cache = true;
    memrt__options.check = false;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    memrt__options.cache = cached;
    memrt__options.check = checked;
    return policy;
}

#define LARGE_BLOCK ((size_t)3 << 20)

/// Allocate and free `count` large blocks; return the bytes in the policy's large-object cache.
static size_t measure_policy_cache(memrt_policy_t *policy, size_t count)
{
    void *blocks[8];
    for (size_t i = 0; i < count; i++) {
        blocks[i] = api->block_alloc(policy, LARGE_BLOCK);
        ck_assert_ptr_nonnull(blocks[i]);
        memset(blocks[i], 0xEE, LARGE_BLOCK);
    }
    for (size_t i = 0; i < count; i++) {
        api->block_free(policy, blocks[i], 0);
    }
    return stats_of(policy).cached;
}

TEST(policy_cache_follows_its_own_limit_and_decay)
{
    suite_set_decay(MEMRT__DECAY_NEVER);
    memrt_policy_t *all = create_limited_policy("none", "never", NULL);
    memrt_policy_t *some = create_limited_policy("4M", "never", NULL);
    memrt_policy_t *none = create_limited_policy("0", "never", NULL);
    memrt_policy_t *at_once = create_limited_policy("none", "0", NULL);
    size_t before = stats_of(NULL).cached,
           shared = memrt__large_cache_cached(&memrt__large_cache_shared);
    ck_assert_uint_ge(measure_policy_cache(all, 4), 4 * LARGE_BLOCK);
    ck_assert_uint_ge(measure_policy_cache(some, 4), LARGE_BLOCK);
    ck_assert_uint_lt(stats_of(some).cached, (size_t)4 << 20);
    ck_assert_uint_eq(measure_policy_cache(none, 4), 0);
    ck_assert_uint_eq(measure_policy_cache(at_once, 4), 0);
    size_t kept = stats_of(all).cached + stats_of(some).cached;
    ck_assert_uint_eq(stats_of(NULL).cached - before, kept);
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared), shared);
    ck_assert_uint_ge(api->release_unused(), kept);
    ck_assert_uint_eq(stats_of(all).cached + stats_of(some).cached, 0);
    api->policy_release(all);
    api->policy_release(some);
    api->policy_release(none);
    api->policy_release(at_once);
}

/// Use and free large blocks of the shared heap; return the bytes in the shared large-object cache.
static size_t measure_shared_cache(void)
{
    void *blocks[4];
    for (size_t i = 0; i < 4; i++) {
        blocks[i] = memrt__allocator_alloc(pool, LARGE_BLOCK, 64, false);
        ck_assert_ptr_nonnull(blocks[i]);
    }
    for (size_t i = 0; i < 4; i++) {
        memrt__allocator_free(pool, blocks[i], LARGE_BLOCK, 64);
    }
    return memrt__large_cache_cached(&memrt__large_cache_shared);
}

static void expect_advice(const char *mode, const void *data, advice_t expected)
{
    ck_assert_int_eq(api->option_set("hugepages", mode, NULL, 0), MEMRT_OK);
    ck_assert(!advice_is_taken() || advice_at(data) == expected);
}

TEST(pages_of_small_blocks_follow_the_huge_page_option)
{
    void *block = memrt__allocator_alloc(pool, 4000, 64, false);
    expect_advice("advise", block, ADVICE_HUGE);
    expect_advice("large", block, ADVICE_SMALL);
    expect_advice("advise", block, ADVICE_HUGE);
    expect_advice("off", block, ADVICE_SMALL);
    expect_advice("large", block, ADVICE_SMALL);
    memrt__allocator_free(pool, block, 4000, 64);
}

TEST(large_cache_follows_changed_decay_and_cache_limit)
{
    suite_set_decay(MEMRT__DECAY_NEVER);
    memrt_policy_t *policy = create_limited_policy("none", "never", NULL);
    ck_assert_uint_ge(measure_shared_cache(), 4 * LARGE_BLOCK);
    size_t kept = measure_policy_cache(policy, 2);
    ck_assert_int_eq(api->option_set("decay", "0", NULL, 0), MEMRT_OK);
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared), 0);
    ck_assert_uint_eq(stats_of(policy).cached, kept);
    ck_assert_int_eq(api->option_set("cache_limit", "4M", NULL, 0), MEMRT_OK);
    ck_assert_uint_lt(stats_of(policy).cached, (size_t)4 << 20);
    ck_assert_uint_gt(stats_of(policy).cached, 0);
    api->policy_release(policy);
    memrt__allocator_release_unused(pool);
}

TEST(cache_follows_changed_options_of_its_policy)
{
    suite_set_decay(MEMRT__DECAY_NEVER);
    memrt_policy_t *policy = create_limited_policy("none", NULL, NULL);
    measure_policy_cache(policy, 4);
    ck_assert_uint_ge(stats_of(policy).cached, 4 * LARGE_BLOCK);
    ck_assert_int_eq(api->policy_option_set(policy, "cache_limit", "4M", NULL, 0), MEMRT_OK);
    ck_assert_uint_lt(stats_of(policy).cached, (size_t)4 << 20);
    ck_assert_uint_gt(stats_of(policy).cached, 0);
    ck_assert_int_eq(api->policy_option_set(policy, "cache_limit", NULL, NULL, 0), MEMRT_OK);
    ck_assert_uint_ge(measure_policy_cache(policy, 4), 4 * LARGE_BLOCK);
    ck_assert_int_eq(api->policy_option_set(policy, "decay", "0", NULL, 0), MEMRT_OK);
    ck_assert_uint_eq(stats_of(policy).cached, 0);
    ck_assert_uint_eq(measure_policy_cache(policy, 2), 0);
    ck_assert_int_eq(api->policy_option_set(policy, "decay", "3", NULL, 0), MEMRT_OK);
    measure_policy_cache(policy, 2);
    while (stats_of(policy).cached != 0) {
        sched_yield();
    }
    api->policy_release(policy);
}

TEST(reused_block_has_the_changed_huge_page_mode_of_its_policy)
{
    static const char *const modes[] = {"off", "advise", "off", NULL, "advise"};
    static const advice_t expected[] = {ADVICE_NONE, ADVICE_HUGE, ADVICE_SMALL, ADVICE_SMALL,
                                        ADVICE_HUGE};
    suite_set_decay(MEMRT__DECAY_NEVER);
    ck_assert_int_eq(api->option_set("hugepages", "off", NULL, 0), MEMRT_OK);
    memrt_policy_t *policy = create_limited_policy("none", "never", "off");
    measure_policy_cache(policy, 1);
    ck_assert_int_eq(api->option_set("hugepages", "advise", NULL, 0), MEMRT_OK);
    ck_assert_int_eq(api->option_set("hugepages", "off", NULL, 0), MEMRT_OK);
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        memrt_status_t status = api->policy_option_set(policy, "hugepages", modes[i], NULL, 0);
        ck_assert_int_eq(status, MEMRT_OK);
        char *block = api->block_alloc(policy, LARGE_BLOCK);
        ck_assert(!advice_is_taken() || advice_at(block + (LARGE_BLOCK / 2)) == expected[i]);
        api->block_free(policy, block, 0);
    }
    api->policy_release(policy);
}

/// Thread 0 changes the options of a policy; the other threads use the policy.
static void use_changing_policy(size_t index, void *context)
{
    static const char *const limits[] = {"none", "4M", "0", NULL};
    static const char *const decays[] = {"never", "0", "1", NULL};
    static const char *const modes[] = {"off", "advise", "large", NULL};
    memrt_option_t row;
    for (size_t round = 0; round < 200; round++) {
        if (index == 0) {
            const char *limit = limits[round % 4], *decay = decays[round / 3 % 4];
            REQUIRE(api->policy_option_set(context, "cache_limit", limit, NULL, 0) == MEMRT_OK);
            REQUIRE(api->policy_option_set(context, "decay", decay, NULL, 0) == MEMRT_OK);
            REQUIRE(api->policy_option_set(context, "hugepages", modes[round / 5 % 4], NULL, 0) ==
                    MEMRT_OK);
        } else {
            char *block = api->block_alloc(context, LARGE_BLOCK + (round % 3 << 20));
            REQUIRE(block != NULL);
            block[0] = block[LARGE_BLOCK - 1] = 1;
            block = api->block_realloc(context, block, LARGE_BLOCK);
            REQUIRE(block != NULL);
            api->block_free(context, block, 0);
            api->policy_option(context, round % 3, &row);
        }
    }
}

TEST(options_of_a_policy_change_beside_threads_that_allocate)
{
    memrt_policy_t *policy = create_limited_policy("none", "never", "off");
    crew_run(4, use_changing_policy, policy);
    ck_assert_int_eq(api->policy_option_set(policy, "cache_limit", "0", NULL, 0), MEMRT_OK);
    ck_assert_uint_eq(stats_of(policy).cached, 0);
    ck_assert_uint_eq(stats_of(policy).live, 0);
    api->policy_release(policy);
}

TEST(shorter_policy_decay_is_served_before_process_decay)
{
    suite_set_decay(3600000);
    ck_assert_uint_gt(measure_shared_cache(), 0);
    while (!kernel_sleeps_long()) {
        sched_yield();
    }
    memrt_policy_t *policy = create_limited_policy(NULL, "10", NULL);
    measure_policy_cache(policy, 2);
    while (stats_of(policy).cached != 0) {
        sched_yield();
    }
    ck_assert_uint_gt(memrt__large_cache_cached(&memrt__large_cache_shared), 0);
    api->policy_release(policy);
    memrt__allocator_release_unused(pool);
}

TEST(small_blocks_of_a_limited_policy_use_the_fast_path)
{
    memrt_policy_t *policy = create_limited_policy("0", "0", "off");
    void *data = api->block_alloc(policy, 100);
    ck_assert(!has_fast_path_blocks() || is_fast_path_block(data));
    api->block_free(policy, data, 0);
    api->policy_release(policy);
}

TEST(released_policy_drops_its_cache_while_its_blocks_live)
{
    suite_set_decay(MEMRT__DECAY_NEVER);
    memrt_policy_t *policy = create_limited_policy("none", "never", NULL);
    void *last = api->block_alloc(policy, LARGE_BLOCK), *next = api->block_alloc(policy, 100);
    ck_assert(last != NULL && next != NULL);
    size_t kept = measure_policy_cache(policy, 2), cached = stats_of(NULL).cached;
    ck_assert_uint_ge(kept, 2 * LARGE_BLOCK);
    uint32_t limit = api->policy_limit();
    api->policy_release(policy);
    ck_assert_uint_eq(stats_of(NULL).cached, cached - kept);
    api->block_free(NULL, last, 0);
    ck_assert_uint_eq(stats_of(NULL).cached, cached - kept);
    ck_assert_uint_eq(api->policy_limit(), limit);
    api->block_free(NULL, next, 0);
}

TEST(mapping_refused_at_policy_end_moves_to_shared_cache)
{
    suite_set_decay(MEMRT__DECAY_NEVER);
    memrt__allocator_release_unused(pool);
    memrt_policy_t *policy = create_limited_policy("none", "never", "off");
    size_t kept = measure_policy_cache(policy, 1);
    kernel_refuse(KERNEL_UNMAP, 0, SIZE_MAX);
    api->policy_release(policy);
    kernel_obey();
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared), kept);
    void *again = memrt__allocator_alloc(pool, LARGE_BLOCK + 64, 64, true);
    ck_assert(again != NULL && pattern_is_zero(again, LARGE_BLOCK + 64));
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared), 0);
    memrt__allocator_free(pool, again, LARGE_BLOCK + 64, 64);
    memrt__allocator_release_unused(pool);
}

static advice_t read_block_advice(memrt_policy_t *policy, size_t size)
{
    char *data = api->block_alloc(policy, size);
    ck_assert_ptr_nonnull(data);
    advice_t advice = advice_at(data);
    api->block_free(policy, data, 0);
    return advice;
}

TEST(policy_huge_page_mode_holds_for_fresh_and_reused_blocks)
{
    memrt_policy_t *off = create_limited_policy(NULL, "never", "off");
    memrt_policy_t *advise = create_limited_policy(NULL, "never", "advise");
    memrt_policy_t *large = create_limited_policy(NULL, "never", "large");
    for (int round = 0; round < 3 && advice_is_taken(); round++) {
        ck_assert_int_eq(read_block_advice(off, LARGE_BLOCK), ADVICE_NONE);
        ck_assert_int_eq(read_block_advice(advise, LARGE_BLOCK), ADVICE_HUGE);
        ck_assert_int_eq(read_block_advice(large, LARGE_BLOCK), ADVICE_NONE);
        ck_assert_int_eq(read_block_advice(off, 4 * LARGE_BLOCK), ADVICE_NONE);
        ck_assert_int_eq(read_block_advice(large, 4 * LARGE_BLOCK), ADVICE_HUGE);
    }
    api->policy_release(off);
    api->policy_release(advise);
    api->policy_release(large);
}

TEST(uncached_policy_uses_huge_pages_and_caches_nothing)
{
    memrt__limits_t limits = {MEMRT__HUGE_ADVISE, SIZE_MAX, MEMRT__DECAY_NEVER, MEMRT__INHERIT};
    bool was = memrt__options.cache;
    memrt_allocator_t plain;
    memrt__options.cache = false;
    ck_assert_int_eq(memrt__limited_allocator(&limits, &plain), MEMRT_OK);
    memrt__options.cache = was;
    void *block = memrt__allocator_alloc(&plain, LARGE_BLOCK, 64, false);
    ck_assert(!advice_is_taken() || advice_at(block) == ADVICE_HUGE);
    memrt__allocator_free(&plain, block, LARGE_BLOCK, 64);
    ck_assert_uint_eq(memrt__allocator_cached(&plain), 0);
    memrt__allocator_destroy(&plain);
}

static void use_in_child(void *context)
{
    memrt_policy_t *policy = context;
    void *data = api->block_alloc(policy, LARGE_BLOCK);
    REQUIRE(data != NULL);
    memset(data, 1, LARGE_BLOCK);
    api->block_free(policy, data, 0);
    REQUIRE(stats_of(policy).cached > LARGE_BLOCK);
    REQUIRE(api->release_unused() > LARGE_BLOCK);
    REQUIRE(stats_of(policy).cached == 0);
    api->policy_release(policy);
}

TEST(forked_child_releases_policy_cache_without_the_parent)
{
    if (!SUITE_THREAD_SANITIZER) {
        suite_set_decay(MEMRT__DECAY_NEVER);
        memrt_policy_t *policy = create_limited_policy("none", "never", NULL);
        size_t kept = measure_policy_cache(policy, 1);
        child_expect_success(use_in_child, policy);
        ck_assert_uint_eq(stats_of(policy).cached, kept);
        api->policy_release(policy);
    }
}

static void use_short_lived_policies(size_t index, void *context)
{
    static const char *const decays[] = {"0", "1", "never"};
    (void)context;
    for (size_t round = 0; round < 60; round++) {
        memrt_policy_options_t options = {.struct_size = sizeof(options),
                                          .decay = decays[(round + index) % 3]};
        memrt_policy_t *policy;
        REQUIRE(api->policy_new(&options, &policy) == MEMRT_OK);
        void *first = api->block_alloc(policy, LARGE_BLOCK);
        void *second = api->block_calloc(policy, 1, LARGE_BLOCK);
        REQUIRE(first != NULL && second != NULL);
        memset(first, 1, 64);
        api->block_free(policy, first, 0);
        api->policy_release(policy);
        REQUIRE(*(char *)second == 0);
        api->block_free(NULL, second, 0);
        REQUIRE(index != 0 || api->option_set("decay", round % 2 ? "3" : "0", NULL, 0) == MEMRT_OK);
    }
}

TEST(threads_use_short_lived_limited_policies_with_purger)
{
    suite_set_decay(3);
    crew_run(4, use_short_lived_policies, NULL);
}

TEST(blocks_may_switch_between_fast_and_slow_path_until_free)
{
    memrt_policy_t *policy = create_pool_policy(0);
    int was = api->tracking_enabled();
    warm_up(policy);
    void *plain = api->block_alloc(policy, 500);
    void *named = api->block_alloc(policy, 500), *promoted = api->block_alloc(policy, 500);
    ck_assert(is_fast_path_block(plain) == has_fast_path_blocks());
    api->tracking(1);
    void *tracked = api->block_alloc(policy, 500);
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->block_meminfo(named, &mi), MEMRT_OK);
    ck_assert_int_eq(api->set_name(mi, "named late"), MEMRT_OK);
    api->release(mi);
    ck_assert_int_eq(api->block_meminfo(promoted, &mi), MEMRT_OK);
    api->block_free(policy, promoted, 0);
    api->release(mi);
    api->block_free(policy, plain, 0); /* while tracking is on */
    api->tracking(0);
    api->block_free(policy, tracked, 0);
    api->block_free(policy, named, 0);
    memrt_stats_t stats = stats_of(policy);
    ck_assert_uint_eq(stats.alloc, 5);
    ck_assert_uint_eq(stats.free, 5);
    ck_assert_uint_eq(stats.mi_alloc, 2);
    ck_assert_uint_eq(stats.mi_free, 2);
    ck_assert_uint_eq(stats.live + stats.reserved, 0);
    api->tracking(was);
    api->policy_release(policy);
}

TEST(resized_fast_path_block_has_the_size_class_of_its_size)
{
    static const size_t sizes[] = {
        1, 64, 65, 1024, 1025, 30000, 70000, 1 << 20, 0, (1 << 20) + 1, 7, 5 << 20, 100};
    memrt_policy_t *policy = create_pool_policy(MEMRT_ALIGN_MIN);
    warm_up(policy);
    for (size_t from = 0; from < sizeof(sizes) / sizeof(sizes[0]); from++) {
        for (size_t to = 0; to < sizeof(sizes) / sizeof(sizes[0]); to++) {
            void *data = api->block_alloc(policy, sizes[from]);
            pattern_write(data, sizes[from], 8);
            data = api->block_realloc(policy, data, sizes[to]);
            ck_assert(pattern_holds(data, memrt__size_min(sizes[from], sizes[to]), 8));
            if ((memrt__block_of(data)->flags & MEMRT__FLAG_FAST) != 0) {
                ck_assert_uint_eq(memrt__block_of(data)->bin, memrt__class_of_data(sizes[to]));
                ck_assert_uint_eq(memrt__page_heap_span_of(memrt__block_of(data))->class,
                                  memrt__class_of_data(sizes[to]));
            }
            api->block_free(policy, data, 0);
        }
    }
    ck_assert_uint_eq(stats_of(policy).live + stats_of(policy).reserved, 0);
    api->policy_release(policy);
}

TEST(wider_policy_alignment_holds_without_the_fast_path)
{
    for (size_t align = 128; align <= (size_t)2 << 20; align *= 4) {
        memrt_policy_t *policy = create_pool_policy(align);
        for (size_t size = 1; size < (size_t)3 << 20; size = size * 9 + 1) {
            void *data = api->block_alloc(policy, size);
            ck_assert_uint_eq((uintptr_t)data % align, 0);
            ck_assert(!is_fast_path_block(data));
            pattern_write(data, size, 6);
            data = api->block_realloc(policy, data, 2 * size);
            ck_assert_uint_eq((uintptr_t)data % align, 0);
            ck_assert(pattern_holds(data, size, 6));
            api->block_free(policy, data, 0);
        }
        ck_assert_uint_eq(stats_of(policy).live + stats_of(policy).reserved, 0);
        api->policy_release(policy);
    }
}

TEST(fast_path_block_delays_reuse_of_its_policy_index)
{
    memrt_policy_t *policy = create_pool_policy(0);
    uint32_t place = api->policy_index(policy);
    warm_up(policy);
    void *first = api->block_alloc(policy, 300), *second = api->block_alloc(policy, 300);
    api->policy_release(policy);
    memrt_policy_t *other = create_pool_policy(0);
    /* blocks keep the index of their policy in use */
    ck_assert_uint_ne(api->policy_index(other), place);
    api->policy_release(other);
    pattern_write(first, 300, 1);
    api->block_free(NULL, second, 0);
    ck_assert(pattern_holds(first, 300, 1));
    api->block_free(NULL, first, 0);
    policy = create_pool_policy(0);
    ck_assert_uint_eq(api->policy_index(policy), place);
    ck_assert_uint_eq(stats_of(policy).alloc, 0);
    api->policy_release(policy);
}

typedef struct handed {
    memrt_policy_t *policy;
    void *blocks[400];
} handed_t;

static void make_or_free(size_t index, void *context)
{
    handed_t *handed = context;
    for (size_t i = index; i < 400; i += 4) {
        if (handed->blocks[i] == NULL) {
            handed->blocks[i] = api->block_alloc(handed->policy, 1 + i * 13);
            pattern_write(handed->blocks[i], 1 + i * 13, (unsigned)i);
        }
    }
}

static void free_others(size_t index, void *context)
{
    handed_t *handed = context;
    for (size_t i = (index + 1) % 4; i < 400; i += 4) {
        REQUIRE(pattern_holds(handed->blocks[i], 1 + i * 13, (unsigned)i));
        api->block_free(handed->policy, handed->blocks[i], 0);
        handed->blocks[i] = NULL;
    }
}

TEST(frees_by_other_threads_keep_policy_statistics_exact)
{
    static handed_t handed;
    handed.policy = create_pool_policy(0);
    for (int round = 0; round < 5; round++) {
        crew_run(4, make_or_free, &handed);
        crew_run(4, free_others, &handed);
    }
    memrt_stats_t stats = stats_of(handed.policy);
    ck_assert_uint_eq(stats.alloc, 2000);
    ck_assert_uint_eq(stats.free, 2000);
    ck_assert_uint_eq(stats.live + stats.reserved, 0);
    api->policy_release(handed.policy);
}

/// Use the heap without a thread record. There is no thread cache then: blocks come from the spans
/// and go back to the spans.
static void use_without_record(size_t index, void *context)
{
    (void)index, (void)context;
    suite_fail_all_requests();
    for (size_t size = 1; size < MEMRT__CLASS_DATA_MAX; size *= 3) {
        char *ptr = memrt__allocator_alloc(pool, size, 256, false);
        REQUIRE(ptr != NULL && (uintptr_t)ptr % 256 == 0);
        memset(ptr, 0xEE, size);
        memrt__allocator_free(pool, ptr, size, 256);
        ptr = memrt__allocator_alloc(pool, size, 64, true);
        REQUIRE(ptr != NULL && pattern_is_zero(ptr, size));
        memrt__allocator_free(pool, ptr, size, 64);
    }
    suite_allow_requests();
    REQUIRE(memrt__thread_or_null() == NULL);
}

static void reserve_thread_records(bool taken[256], bool take)
{
    size_t i = 0;
    memrt__lock(MEMRT__RANK_THREADS);
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next, i++) {
        REQUIRE(i < 256);
        taken[i] = take ? !t->in_use : taken[i];
        t->in_use = take || (t->in_use && !taken[i]);
    }
    memrt__unlock(MEMRT__RANK_THREADS);
}

TEST(thread_without_a_record_can_use_the_heap)
{
    bool taken[256] = {false};
    warm_up(NULL);
    reserve_thread_records(taken, true);
    crew_run(1, use_without_record, NULL);
    reserve_thread_records(taken, false);
}

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33) && !MEMRT__ADDRESS_SANITIZER &&                    \
    !MEMRT__THREAD_SANITIZER
/// Return the number of blocks that glibc has mapped separately.
static size_t count_malloc_mappings(void)
{
    return mallinfo2().hblks;
}

/// glibc raises its mmap threshold when a mapped block is freed.
TEST(mmap_threshold_of_malloc_stays_unchanged)
{
    size_t size = (size_t)2 << 20, others = 6 * size * MEMRT__RETENTION_SHARE;
    if (!suite_measures_memory()) { /* under Valgrind, malloc is Valgrind's */
        return;
    }
    size_t before = count_malloc_mappings();
    for (size_t bytes = (size_t)200 << 10; bytes < (size_t)40 << 20; bytes *= 2) {
        void *data = api->block_alloc(NULL, bytes);
        ck_assert_ptr_nonnull(data);
        api->block_free(NULL, data, 0);
    }
    char *touched = memrt__os_map(others, 0, 1);
    ck_assert_ptr_nonnull(touched);
    memset(touched, 1, others);
    memrt__retention_budget_update(memrt__os_now_ns() + 2 * MEMRT__RETENTION_NS);
    void *volatile block = malloc(size); /* volatile: prevents removal of the pair */
    ck_assert_uint_eq(count_malloc_mappings(), before + 1);
    free(block);
    memrt__os_unmap(touched, others);
}
#endif

/// Return the number of places, of 64 bytes each, at which blocks of `size` bytes begin in a page.
static unsigned count_places(size_t size)
{
    enum { BLOCKS = 48 };
    void *data[BLOCKS];
    uint64_t places = 0;
    for (size_t i = 0; i < BLOCKS; i++) {
        data[i] = api->block_alloc(NULL, size);
        size_t offset = (size_t)data[i] % 4096;
        ck_assert_uint_eq(offset % 64, 0);
        ck_assert_uint_le(offset, MEMRT_HEADER_SIZE + MEMRT__START_MAX);
        places |= (uint64_t)1 << offset / 64;
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        api->block_free(NULL, data[i], size);
    }
    return (unsigned)__builtin_popcountll(places);
}

TEST(large_blocks_begin_at_many_places_of_their_pages)
{
    if (!memrt__options.cache || memrt__options.check) { /* other allocators */
        return;
    }
    const size_t sizes[] = {32 << 10, 100000, 1 << 20, 3 << 20, 20 << 20};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        ck_assert_uint_ge(count_places(sizes[i]), 8);
    }
}

/// Allocate and free 300 blocks of 900 KB three times, while the kernel refuses to discard pages.
static void use_locked_memory(void *context)
{
    enum { BLOCKS = 300 };
    static void *blocks[BLOCKS];
    size_t discards = kernel_calls(KERNEL_DISCARD);
    (void)context;
    if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0) {
        return; /* a limit of locked memory */
    }
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            blocks[i] = api->block_alloc(NULL, 900000);
        }
        for (size_t i = 0; i < BLOCKS; i++) {
            api->block_free(NULL, blocks[i], 900000);
        }
        (void)api->release_unused();
    }
    REQUIRE(kernel_calls(KERNEL_DISCARD) - discards < 3 * BLOCKS * 4);
}

TEST(process_with_locked_memory_makes_few_calls)
{
    suite_set_decay(0);
    child_expect_success(use_locked_memory, NULL);
}
