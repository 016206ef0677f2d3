#include "support/suite.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "runtime/alloc/allocator.h"
#include "runtime/alloc/heap/central/central_list.h"
#include "runtime/alloc/heap/handover.h"
#include "runtime/alloc/heap/heap.h"
#include "runtime/alloc/heap/purger.h"
#include "runtime/alloc/heap/size_class.h"
#include "runtime/alloc/heap/thread_cache.h"
#include "runtime/config/options.h"
#include "support/child.h"
#include "support/crew.h"

#define CLASS 10u
#define LARGEST memrt__class_of_bytes(MEMRT__CLASS_BYTES_MAX)

/// Push of `count` blocks of a class on another thread.
typedef struct push {
    unsigned class;
    size_t count;
    void *list;
    bool accepted;
} push_t;

static void *take_and_push(void *context)
{
    push_t *push = context;
    size_t taken;
    REQUIRE(memrt__thread_self() != NULL); /* a thread without a record is the taker of no block */
    push->list = memrt__central_list_take(push->class, push->count, &taken);
    REQUIRE(push->list != NULL && taken == push->count);
    push->accepted = memrt__handover_push(push->class, push->list, taken);
    if (!push->accepted) {
        memrt__central_list_give(push->class, push->list);
    }
    return NULL;
}

static push_t push_on_thread(unsigned class, size_t count)
{
    push_t push = {.class = class, .count = count};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, take_and_push, &push), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    return push;
}

/// Empty all caches, and make the calling thread the taker of a class.
static void begin(unsigned class)
{
    size_t taken;
    suite_set_decay(MEMRT__DECAY_NEVER);
    memrt__allocator_release_unused(&memrt__heap_allocator);
    REQUIRE(memrt__thread_self() != NULL);
    ck_assert_ptr_null(memrt__handover_pop(class, 1, &taken));
    ck_assert_uint_eq(memrt__handover_cached(), 0);
}

static size_t count_list(void *list)
{
    size_t count = 0;
    for (; list != NULL; list = memrt__block_next(list)) {
        count++;
    }
    return count;
}

TEST(pushed_batch_is_popped_whole_by_the_taker)
{
    size_t taken;
    begin(CLASS);
    push_t push = push_on_thread(CLASS, 7);
    ck_assert(push.accepted);
    ck_assert_uint_eq(memrt__handover_cached(), 7 * memrt__class_bytes(CLASS));
    void *list = memrt__handover_pop(CLASS, MEMRT__HANDOVER_BLOCKS, &taken);
    ck_assert_ptr_eq(list, push.list);
    ck_assert_uint_eq(taken, 7);
    ck_assert_uint_eq(count_list(list), 7);
    ck_assert_uint_eq(memrt__handover_cached(), 0);
    memrt__central_list_give(CLASS, list);
}

TEST(large_batch_is_popped_in_parts)
{
    size_t taken;
    begin(CLASS);
    ck_assert(push_on_thread(CLASS, 5).accepted);
    for (size_t left = 5; left != 0; left -= taken) {
        void *list = memrt__handover_pop(CLASS, 2, &taken);
        ck_assert_uint_eq(taken, left < 2 ? left : 2);
        ck_assert_uint_eq(count_list(list), taken);
        ck_assert_uint_eq(memrt__handover_cached(), (left - taken) * memrt__class_bytes(CLASS));
        suite_expect_valid();
        memrt__central_list_give(CLASS, list);
    }
}

TEST(thread_that_takes_blocks_pushes_none)
{
    size_t taken;
    begin(CLASS);
    void *list = memrt__central_list_take(CLASS, 3, &taken);
    ck_assert(!memrt__handover_push(CLASS, list, taken));
    ck_assert_uint_eq(count_list(list), taken);
    memrt__central_list_give(CLASS, list);
}

TEST(push_without_room_is_refused)
{
    const struct {
        unsigned class;
        size_t count, batches;
    } cases[] = {
        {CLASS, 3, MEMRT__HANDOVER_SLOTS},
        {CLASS, MEMRT__HANDOVER_BLOCKS + 1, 0},
        {LARGEST, 1, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        begin(cases[i].class);
        for (size_t batch = 0; batch < cases[i].batches; batch++) {
            ck_assert(push_on_thread(cases[i].class, cases[i].count).accepted);
        }
        ck_assert(!push_on_thread(cases[i].class, cases[i].count).accepted);
        memrt__handover_purge(true);
        ck_assert_uint_eq(memrt__handover_cached(), 0);
    }
}

TEST(purge_gives_back_batches_that_no_thread_took)
{
    size_t taken;
    begin(CLASS);
    ck_assert(push_on_thread(CLASS, 4).accepted);
    memrt__handover_purge(false);
    void *list = memrt__handover_pop(CLASS, 4, &taken);
    ck_assert_uint_eq(taken, 4);
    memrt__central_list_give(CLASS, list);
    ck_assert(push_on_thread(CLASS, 4).accepted);
    memrt__handover_purge(false); /* the batch in the slot is another batch than before */
    ck_assert_uint_eq(memrt__handover_cached(), 4 * memrt__class_bytes(CLASS));
    memrt__handover_purge(false);
    ck_assert_uint_eq(memrt__handover_cached(), 0);
}

TEST(purger_gives_back_batches_after_the_decay)
{
    begin(CLASS);
    suite_set_decay(20);
    ck_assert(push_on_thread(CLASS, 4).accepted);
    while (memrt__handover_cached() != 0) { /* the timeout of the test ends the wait */
        sched_yield();
    }
}

static void pop_batch(void *context)
{
    size_t taken;
    void *list = memrt__handover_pop(CLASS, 4, &taken);
    REQUIRE(list != NULL && taken == 4 && context == NULL);
    memrt__central_list_give(CLASS, list);
}

TEST(forked_child_has_the_batches_of_the_parent)
{
    begin(CLASS);
    ck_assert(push_on_thread(CLASS, 4).accepted);
    child_expect_success(pop_batch, NULL);
    ck_assert_uint_eq(memrt__handover_cached(), 4 * memrt__class_bytes(CLASS));
    memrt__handover_purge(true);
}

enum { FREED = 400 };

static void *free_blocks(void *context)
{
    void **blocks = context;
    memrt__thread_t *self = memrt__thread_self();
    REQUIRE(self != NULL);
    for (size_t i = 0; i < FREED; i++) {
        memrt__thread_cache_give(self, CLASS, blocks[i]);
    }
    REQUIRE(memrt__handover_cached() != 0);
    return NULL;
}

TEST(full_bin_hands_blocks_to_the_thread_that_allocates)
{
    void *blocks[FREED];
    pthread_t thread;
    begin(CLASS);
    memrt__thread_t *self = memrt__thread_self();
    for (size_t i = 0; i < FREED; i++) {
        blocks[i] = memrt__thread_cache_take(self, CLASS);
        ck_assert_ptr_nonnull(blocks[i]);
    }
    memrt__thread_cache_drain(self); /* so that the limit of the bin is 0 */
    ck_assert_int_eq(pthread_create(&thread, NULL, free_blocks, blocks), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    size_t batch = memrt__handover_cached() / memrt__class_bytes(CLASS);
    ck_assert_uint_gt(batch, 2);
    void *block = memrt__thread_cache_refill(self, CLASS);
    size_t cached = memrt__bin_count(self, CLASS) + 1;
    ck_assert_uint_gt(cached, 2); /* more than the first limit of a bin */
    ck_assert_uint_eq(memrt__handover_cached(), (batch - cached) * memrt__class_bytes(CLASS));
    ck_assert_uint_le(memrt__bin_count(self, CLASS), self->cache.bins.limit[CLASS]);
    memrt__thread_cache_give(self, CLASS, block);
    memrt__handover_purge(true);
}

enum { TRADERS = 4, ROUNDS = 3000 };

/// Take blocks of other threads or of the central list, mark the blocks, and push them.
static void trade_blocks(size_t index, void *context)
{
    (void)context;
    REQUIRE(memrt__thread_self() != NULL);
    for (size_t round = 0; round < ROUNDS; round++) {
        size_t taken, most = 1 + round % MEMRT__HANDOVER_BLOCKS;
        void *list = memrt__handover_pop(CLASS, most, &taken);
        if (list == NULL) {
            list = memrt__central_list_take(CLASS, most, &taken);
        }
        REQUIRE(list != NULL && taken <= most && count_list(list) == taken);
        for (void *block = list; block != NULL; block = memrt__block_next(block)) {
            *(size_t *)block = index;
        }
        for (void *block = list; block != NULL; block = memrt__block_next(block)) {
            REQUIRE(*(size_t *)block == index);
        }
        if (!memrt__handover_push(CLASS, list, taken)) {
            memrt__central_list_give(CLASS, list);
        }
        if (round % 500 == 0) {
            memrt__handover_purge(round % 1000 == 0);
        }
    }
}

TEST(concurrent_threads_never_pop_the_same_block)
{
    begin(CLASS);
    size_t cached = memrt__central_list_cached();
    crew_run(TRADERS, trade_blocks, NULL);
    memrt__handover_purge(true);
    ck_assert_uint_eq(memrt__handover_cached(), 0);
    ck_assert_uint_eq(memrt__central_list_cached(), cached);
}
