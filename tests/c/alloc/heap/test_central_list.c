#include "support/suite.h"

#include <string.h>

#include "conformance/pattern.h"
#include "runtime/alloc/allocator.h"
#include "runtime/alloc/heap/central/central_list.h"
#include "runtime/alloc/heap/fast_header.h"
#include "runtime/alloc/heap/large_cache.h"
#include "runtime/alloc/heap/pages/page_heap.h"
#include "runtime/alloc/heap/retention_budget.h"
#include "runtime/alloc/heap/size_class.h"
#include "runtime/config/options.h"
#include "support/crew.h"
#include "support/kernel.h"

#define LARGEST memrt__class_of_bytes(MEMRT__CLASS_BYTES_MAX)

static void empty_caches(void)
{
    suite_set_decay(MEMRT__DECAY_NEVER);
    memrt__allocator_release_unused(&memrt__heap_allocator);
}

static size_t count_list(void *list)
{
    size_t count = 0;
    for (; list != NULL; list = memrt__block_next(list)) {
        count++;
    }
    return count;
}

static void give_one_block(unsigned class, void *block)
{
    memrt__block_set_next(block, NULL);
    memrt__central_list_give(class, block);
}

enum { BATCH = 20 };

/// Take a batch of BATCH blocks, from pages in memory if the blocks are large.
static void *take_batch(unsigned class)
{
    void *blocks[BATCH];
    bool clean;
    size_t taken;
    for (unsigned i = 0; i < BATCH; i++) {
        blocks[i] = memrt__central_list_take_one(class, &clean);
        ck_assert_ptr_nonnull(blocks[i]);
    }
    for (unsigned i = 0; i < BATCH; i++) {
        give_one_block(class, blocks[i]);
    }
    void *list = memrt__central_list_take(class, BATCH, &taken);
    ck_assert_uint_eq(taken, BATCH);
    ck_assert_uint_eq(count_list(list), BATCH);
    return list;
}

TEST(batch_has_requested_length_and_disjoint_blocks)
{
    empty_caches();
    size_t cached = memrt__central_list_cached();
    for (unsigned class = 0; class < MEMRT__CLASSES; class += 5) {
        void *blocks[BATCH];
        size_t bytes = memrt__class_bytes(class);
        void *list = take_batch(class);
        for (unsigned i = 0; i < BATCH; i++) {
            blocks[i] = list;
            list = memrt__block_next(list);
        }
        for (unsigned i = 0; i < BATCH; i++) {
            pattern_write(blocks[i], bytes, i);
        }
        for (unsigned i = 0; i < BATCH; i++) {
            ck_assert(pattern_holds(blocks[i], bytes, i));
            give_one_block(class, blocks[i]);
        }
    }
    ck_assert_uint_eq(memrt__central_list_cached(),
                      cached); /* all spans went back to their segments */
}

TEST(batch_has_one_large_block_of_fresh_pages_at_most)
{
    empty_caches();
    size_t taken;
    void *first = memrt__central_list_take(LARGEST, BATCH, &taken);
    ck_assert_uint_eq(taken, 1);
    void *second = memrt__central_list_take(LARGEST, BATCH, &taken);
    ck_assert_uint_eq(taken, 1);
    give_one_block(LARGEST, first);
    void *list = memrt__central_list_take(LARGEST, BATCH, &taken);
    ck_assert_uint_eq(taken, 1);
    ck_assert_ptr_eq(list, first);
    give_one_block(LARGEST, first);
    give_one_block(LARGEST, second);
    list = memrt__central_list_take(LARGEST, BATCH, &taken);
    ck_assert_uint_eq(taken, 2);
    memrt__central_list_give(LARGEST, list);
}

TEST(returned_block_is_counted_and_reused_before_fresh_blocks)
{
    empty_caches();
    unsigned class = 10;
    bool clean;
    size_t cached = memrt__central_list_cached();
    void *first = memrt__central_list_take_one(class, &clean);
    void *second = memrt__central_list_take_one(class, &clean);
    ck_assert(first != NULL && second != NULL && first != second);
    give_one_block(class, first);
    ck_assert_uint_eq(memrt__central_list_cached(), cached + memrt__class_bytes(class));
    ck_assert_ptr_eq(memrt__central_list_take_one(class, &clean), first);
    ck_assert_uint_eq(memrt__central_list_cached(), cached);
    give_one_block(class, second);
    give_one_block(class, first);
    ck_assert_uint_eq(memrt__central_list_cached(), cached);
}

TEST(freed_large_block_releases_pages_immediately)
{
    empty_caches();
    unsigned class = memrt__class_of_data((size_t)40 << 10);
    size_t units = (memrt__class_bytes(class) + MEMRT__UNIT - 1) / MEMRT__UNIT;
    size_t used = memrt__page_heap_used();
    bool clean;
    void *blocks[20];
    for (size_t i = 0; i < 20; i++) {
        blocks[i] = memrt__central_list_take_one(class, &clean);
    }
    for (size_t i = 0; i < 20; i++) {
        ck_assert_uint_le(memrt__page_heap_used(), used + (20 - i) * units * MEMRT__UNIT);
        give_one_block(class, blocks[i]);
    }
    ck_assert_uint_eq(memrt__page_heap_used(), used);
}

TEST(returned_blocks_of_many_spans_are_reused_before_new_span)
{
    enum { MANY = 3000 };
    static void *blocks[MANY];
    empty_caches();
    unsigned class = 10;
    bool clean;
    for (size_t i = 0; i < MANY; i++) {
        blocks[i] = memrt__central_list_take_one(class, &clean);
    }
    size_t used = memrt__page_heap_used();
    for (size_t i = 0; i < MANY; i += 5) {
        give_one_block(class, blocks[i]);
    }
    for (size_t i = 0; i < MANY; i += 5) {
        blocks[i] = memrt__central_list_take_one(class, &clean);
    }
    ck_assert_uint_eq(memrt__page_heap_used(), used);
    for (size_t i = 0; i < MANY; i++) {
        give_one_block(class, blocks[i]);
    }
}

TEST(new_spans_start_small_and_at_most_double_class_memory)
{
    empty_caches();
    unsigned class = 30;
    enum { MOST = 100 };
    void *blocks[MOST];
    size_t had = 0, bytes = memrt__class_bytes(class), spans = 0;
    const memrt__span_t *last = NULL;
    for (int i = 0; i < MOST; i++) {
        bool clean;
        blocks[i] = memrt__central_list_take_one(class, &clean);
        ck_assert_ptr_nonnull(blocks[i]);
        const memrt__span_t *span = memrt__page_heap_span_of(blocks[i]);
        if (span != last) {
            ck_assert_uint_le(span->units * MEMRT__UNIT,
                              memrt__size_max(had, 2 * MEMRT__UNIT + bytes));
            had += span->units * MEMRT__UNIT;
            last = span;
            spans++;
        }
    }
    ck_assert_uint_ge(spans, 3);
    ck_assert_uint_ge(last->units * MEMRT__UNIT, 8 * bytes);
    for (int i = 0; i < MOST; i++) {
        give_one_block(class, blocks[i]);
    }
}

/// Return whether a block is zero, except for the words of memrt__cached_header_write().
static bool is_zero_after_header(unsigned class, const char *block)
{
    size_t bytes = memrt__class_bytes(class);
    if (!memrt__class_has_cached_header(class)) {
        return pattern_is_zero(block, bytes);
    }
    return memrt__cached_header_is_valid((const memrt_meminfo_t *)block) &&
           pattern_is_zero(block + MEMRT_HEADER_SIZE, bytes - MEMRT_HEADER_SIZE);
}

TEST(clean_block_is_zero_and_used_block_is_not_clean)
{
    empty_caches();
    for (unsigned class = 0; class < MEMRT__CLASSES; class += 7) {
        bool clean;
        size_t bytes = memrt__class_bytes(class);
        void *anchor = memrt__central_list_take_one(class, &clean);
        void *block = memrt__central_list_take_one(class, &clean);
        ck_assert(!clean || is_zero_after_header(class, block));
        memset(block, 0xEE, bytes);
        give_one_block(class, block);
        void *again = memrt__central_list_take_one(class, &clean);
        ck_assert(!clean || is_zero_after_header(class, again));
        ck_assert(again != block || !clean);
        memset(again, 0xEE, bytes);
        give_one_block(class, again);
        give_one_block(class, anchor);
        memrt__page_heap_purge(true);
        /* at the old address, or in a fresh segment */
        block = memrt__central_list_take_one(class, &clean);
        ck_assert(clean);
        ck_assert(is_zero_after_header(class, block));
        give_one_block(class, block);
    }
}

TEST(out_of_memory_returns_short_batch_then_null)
{
    empty_caches();
    unsigned class = memrt__class_of_bytes(MEMRT__SMALL_CLASS_MAX) - 1;
    size_t taken, more;
    bool clean;
    void *anchor = memrt__central_list_take_one(class, &clean);
    ck_assert_ptr_nonnull(anchor);
    kernel_refuse(KERNEL_MAP, 0, SIZE_MAX);
    void *list = memrt__central_list_take(class, 1000, &taken);
    ck_assert_uint_lt(taken, 1000);
    ck_assert_uint_eq(count_list(list), taken);
    ck_assert_ptr_null(memrt__central_list_take(class, 2, &more));
    ck_assert_uint_eq(more, 0);
    ck_assert_ptr_null(memrt__central_list_take_one(class, &clean));
    kernel_obey();
    if (list != NULL) {
        memrt__central_list_give(class, list);
    }
    give_one_block(class, anchor);
}

/// Take blocks of the largest class until a block needs a new segment.
static size_t fill_segments(void **blocks, size_t most)
{
    size_t count = 0;
    bool clean;
    kernel_refuse(KERNEL_MAP, 0, SIZE_MAX);
    while (count < most &&
           (blocks[count] = memrt__central_list_take_one(LARGEST, &clean)) != NULL) {
        count++;
    }
    kernel_obey();
    ck_assert_uint_lt(count, most);
    return count;
}

static void *take_listed_block(unsigned class)
{
    size_t taken;
    return memrt__central_list_take(class, 1, &taken);
}

static void *take_single_block(unsigned class)
{
    bool clean;
    return memrt__central_list_take_one(class, &clean);
}

TEST_EACH(block_shortage_releases_large_object_cache, 2)
{
    enum { MOST = 400 };
    empty_caches();
    void *blocks[MOST];
    size_t bytes, count = fill_segments(blocks, MOST);
    ck_assert(memrt__large_cache_bytes((size_t)3 << 20, &bytes));
    void *mapping = memrt__large_cache_take(&memrt__large_cache_shared, bytes, 64, false);
    ck_assert_ptr_nonnull(mapping);
    memrt__large_cache_give(&memrt__large_cache_shared, mapping, bytes);
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared), bytes);
    kernel_refuse(KERNEL_MAP, 0, 1);
    blocks[count] = (index == 0 ? take_single_block : take_listed_block)(LARGEST);
    ck_assert_ptr_nonnull(blocks[count]);
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared), 0);
    for (size_t i = 0; i <= count; i++) {
        give_one_block(LARGEST, blocks[i]);
    }
}

static size_t cached_bytes, opens_unlocked, unmaps_unlocked;

/// Take the lock of every class; hangs if the calling thread holds the lock of a class. Unmapped
/// memory of other sizes is at most a segment: a trimmed end of an aligned mapping, for example.
static void take_every_lock(size_t size)
{
    if (size == 0 || size == cached_bytes) {
        memrt__central_list_cached();
        opens_unlocked += size == 0;
        unmaps_unlocked += size != 0;
    }
}

TEST(growth_reads_files_and_unmaps_without_class_locks)
{
    enum { MOST = 400 };
    empty_caches();
    void *blocks[MOST];
    size_t count = 0;
    ck_assert(memrt__large_cache_bytes(MEMRT__SEGMENT + 1, &cached_bytes));
    ck_assert_uint_gt(cached_bytes, MEMRT__SEGMENT);
    void *mapping = memrt__large_cache_take(&memrt__large_cache_shared, cached_bytes, 64, false);
    ck_assert_ptr_nonnull(mapping);
    memrt__large_cache_give(&memrt__large_cache_shared, mapping, cached_bytes);
    kernel_let_pass(2 * MEMRT__RETENTION_NS);
    kernel_at_call(take_every_lock);
    while (count < MOST && memrt__large_cache_cached(&memrt__large_cache_shared) != 0) {
        blocks[count] = take_single_block(LARGEST);
        ck_assert_ptr_nonnull(blocks[count]);
        count++;
    }
    kernel_at_call(NULL);
    ck_assert_uint_eq(unmaps_unlocked, 1);
    ck_assert_uint_ge(opens_unlocked, 1);
    for (size_t i = 0; i < count; i++) {
        give_one_block(LARGEST, blocks[i]);
    }
}

static void exchange_blocks(size_t index, void *context)
{
    (void)context;
    for (unsigned round = 0; round < 2000; round++) {
        unsigned class = (unsigned)(round + index) % 40;
        size_t taken;
        void *list = memrt__central_list_take(class, 1 + round % 30, &taken);
        REQUIRE(list != NULL && count_list(list) == taken);
        for (void *block = list; block != NULL; block = memrt__block_next(block)) {
            REQUIRE(memrt__page_heap_span_of(block)->class == class);
            *(size_t *)block = index;
        }
        for (void *block = list; block != NULL; block = memrt__block_next(block)) {
            REQUIRE(*(size_t *)block == index);
        }
        memrt__central_list_give(class, list);
        if (round % 100 == 0) {
            memrt__page_heap_purge(true);
        }
    }
}

TEST(concurrent_threads_never_get_the_same_block)
{
    empty_caches();
    size_t cached = memrt__central_list_cached();
    crew_run(4, exchange_blocks, NULL);
    ck_assert_uint_eq(memrt__central_list_cached(), cached);
}
