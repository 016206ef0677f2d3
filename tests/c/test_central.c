#include "support/suite.h"

#include <string.h>

#include "conformance/pattern.h"
#include "runtime/alloc/allocator.h"
#include "runtime/alloc/central.h"
#include "runtime/alloc/pages.h"
#include "runtime/alloc/size_class.h"
#include "runtime/base/options.h"
#include "support/crew.h"
#include "support/kernel.h"

static void begin(void)
{
    suite_set_decay(MEMRT__DECAY_NEVER);
    memrt__allocator_release_unused(&memrt__pool_allocator);
}

static size_t length(void *list)
{
    size_t count = 0;
    for (; list != NULL; list = *memrt__block_next(list)) {
        count++;
    }
    return count;
}

static void give_one(unsigned class, void *block)
{
    *memrt__block_next(block) = NULL;
    memrt__central_give(class, block);
}

TEST(a_batch_is_a_list_of_blocks_that_have_their_bytes_for_themselves)
{
    begin();
    size_t cached = memrt__central_cached();
    for (unsigned class = 0; class < MEMRT__CLASSES; class += 5) {
        enum { MOST = 20 };
        void *blocks[MOST];
        size_t taken, bytes = memrt__class_bytes(class);
        void *list = memrt__central_take(class, MOST, &taken);
        ck_assert_uint_eq(taken, MOST);
        ck_assert_uint_eq(length(list), MOST);
        for (unsigned i = 0; i < MOST; i++) {
            blocks[i] = list;
            list = *memrt__block_next(list);
        }
        for (unsigned i = 0; i < MOST; i++) {
            pattern_write(blocks[i], bytes, i);
        }
        for (unsigned i = 0; i < MOST; i++) {
            ck_assert(pattern_holds(blocks[i], bytes, i));
            give_one(class, blocks[i]);
        }
    }
    ck_assert_uint_eq(memrt__central_cached(), cached); /* all spans went back to their segments */
}

TEST(blocks_given_back_are_counted_and_taken_again_before_fresh_ones)
{
    begin();
    unsigned class = 10;
    bool clean;
    size_t cached = memrt__central_cached();
    void *first = memrt__central_take_one(class, &clean);
    void *second = memrt__central_take_one(class, &clean);
    ck_assert(first != NULL && second != NULL && first != second);
    give_one(class, first);
    ck_assert_uint_eq(memrt__central_cached(), cached + memrt__class_bytes(class));
    ck_assert_ptr_eq(memrt__central_take_one(class, &clean), first);
    ck_assert_uint_eq(memrt__central_cached(), cached);
    give_one(class, second);
    give_one(class, first);
    ck_assert_uint_eq(memrt__central_cached(), cached);
}

TEST(a_large_block_goes_back_without_waiting_for_others)
{
    begin();
    unsigned class = memrt__class_of_data((size_t)40 << 10);
    size_t units = (memrt__class_bytes(class) + MEMRT__UNIT - 1) / MEMRT__UNIT;
    size_t used = memrt__pages_used();
    bool clean;
    void *blocks[20];
    for (size_t i = 0; i < 20; i++) {
        blocks[i] = memrt__central_take_one(class, &clean);
    }
    for (size_t i = 0; i < 20; i++) {
        ck_assert_uint_le(memrt__pages_used(), used + (20 - i) * units * MEMRT__UNIT);
        give_one(class, blocks[i]);
    }
    ck_assert_uint_eq(memrt__pages_used(), used);
}

TEST(blocks_that_came_back_to_several_spans_are_all_taken_before_there_is_another)
{
    enum { MANY = 3000 };
    static void *blocks[MANY];
    begin();
    unsigned class = 10;
    bool clean;
    for (size_t i = 0; i < MANY; i++) {
        blocks[i] = memrt__central_take_one(class, &clean);
    }
    size_t used = memrt__pages_used();
    for (size_t i = 0; i < MANY; i += 5) {
        give_one(class, blocks[i]);
    }
    for (size_t i = 0; i < MANY; i += 5) {
        blocks[i] = memrt__central_take_one(class, &clean);
    }
    ck_assert_uint_eq(memrt__pages_used(), used);
    for (size_t i = 0; i < MANY; i++) {
        give_one(class, blocks[i]);
    }
}

TEST(a_class_begins_with_a_small_span_and_each_further_one_doubles_what_it_has)
{
    begin();
    unsigned class = 30;
    enum { MOST = 100 };
    void *blocks[MOST];
    size_t had = 0, bytes = memrt__class_bytes(class), spans = 0;
    const memrt__span_t *last = NULL;
    for (int i = 0; i < MOST; i++) {
        bool clean;
        blocks[i] = memrt__central_take_one(class, &clean);
        ck_assert_ptr_nonnull(blocks[i]);
        const memrt__span_t *span = memrt__pages_span_of(blocks[i]);
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
        give_one(class, blocks[i]);
    }
}

TEST(a_block_that_is_said_to_be_clean_is_zero_and_a_used_one_is_not_said_to_be)
{
    begin();
    for (unsigned class = 1; class < MEMRT__CLASSES; class += 7) {
        bool clean;
        size_t bytes = memrt__class_bytes(class);
        void *anchor = memrt__central_take_one(class, &clean);
        void *block = memrt__central_take_one(class, &clean);
        ck_assert(!clean || pattern_is_zero(block, bytes));
        memset(block, 0xEE, bytes);
        give_one(class, block);
        void *again = memrt__central_take_one(class, &clean);
        ck_assert(!clean || pattern_is_zero(again, bytes));
        ck_assert(again != block || !clean);
        memset(again, 0xEE, bytes);
        give_one(class, again);
        give_one(class, anchor);
        memrt__pages_purge(true);
        block = memrt__central_take_one(class, &clean); /* where it was, or in a fresh segment */
        ck_assert(clean);
        ck_assert(pattern_is_zero(block, bytes));
        give_one(class, block);
    }
}

TEST(a_shortage_gives_what_there_is_and_then_nothing)
{
    begin();
    unsigned class = MEMRT__CLASS_TINY - 1;
    size_t taken, more;
    bool clean;
    void *anchor = memrt__central_take_one(class, &clean);
    ck_assert_ptr_nonnull(anchor);
    kernel_refuse(KERNEL_MAP, 0, SIZE_MAX);
    void *list = memrt__central_take(class, 1000, &taken);
    ck_assert_uint_lt(taken, 1000);
    ck_assert_uint_eq(length(list), taken);
    ck_assert_ptr_null(memrt__central_take(class, 2, &more));
    ck_assert_uint_eq(more, 0);
    ck_assert_ptr_null(memrt__central_take_one(class, &clean));
    kernel_obey();
    if (list != NULL) {
        memrt__central_give(class, list);
    }
    give_one(class, anchor);
}

static void trade(size_t index, void *context)
{
    (void)context;
    for (unsigned round = 0; round < 2000; round++) {
        unsigned class = (unsigned)(round + index) % 40;
        size_t taken;
        void *list = memrt__central_take(class, 1 + round % 30, &taken);
        REQUIRE(list != NULL && length(list) == taken);
        for (void *block = list; block != NULL; block = *memrt__block_next(block)) {
            REQUIRE(memrt__pages_span_of(block)->class == class);
            *(size_t *)block = index;
        }
        for (void *block = list; block != NULL; block = *memrt__block_next(block)) {
            REQUIRE(*(size_t *)block == index);
        }
        memrt__central_give(class, list);
        if (round % 100 == 0) {
            memrt__pages_purge(true);
        }
    }
}

TEST(threads_that_trade_never_have_a_block_in_common)
{
    begin();
    size_t cached = memrt__central_cached();
    crew_run(4, trade, NULL);
    ck_assert_uint_eq(memrt__central_cached(), cached);
}
