/// Tests of the thread cache.

#include "support/suite.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/alloc/allocator.h"
#include "runtime/alloc/heap/central/central_list.h"
#include "runtime/alloc/heap/handover.h"
#include "runtime/alloc/heap/pages/page_heap.h"
#include "runtime/alloc/heap/thread_cache.h"
#include "runtime/config/options.h"
#include "runtime/os/lock.h"
#include "support/child.h"
#include "support/crew.h"
#include "support/kernel.h"

static memrt__thread_t *empty_caches(void)
{
    suite_set_decay(MEMRT__DECAY_NEVER);
    memrt__allocator_release_unused(&memrt__heap_allocator);
    memrt__thread_t *self = memrt__thread_self();
    REQUIRE(self != NULL);
    return self;
}

/// Check the invariants of the thread cache. Each bin has as many blocks as its count, and at most
/// its limit. All limits together stay within the limits of a thread.
static void verify_cache(const memrt__thread_t *self)
{
    size_t limits[2] = {0, 0};
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        const memrt__bins_t *bins = &self->cache.bins;
        size_t length = 0;
        for (void *block = (void *)bins->head[class]; block != NULL;
             block = memrt__block_next(block)) {
            REQUIRE(memrt__page_heap_span_of(block)->class == class);
            length++;
        }
        size_t limit = memrt__load_relaxed(&bins->limit[class]), bytes = memrt__class_bytes(class);
        REQUIRE(memrt__bin_count(self, class) == length && length <= limit);
        limits[bytes > MEMRT__SMALL_CLASS_MAX] += limit * bytes;
    }
    REQUIRE(memcmp(self->cache.limits, limits, sizeof(limits)) == 0);
    REQUIRE(limits[0] <= MEMRT__THREAD_CACHE_SMALL_MAX &&
            limits[1] <= MEMRT__THREAD_CACHE_MEDIUM_MAX);
}

static unsigned choose_class(unsigned *seed)
{
    unsigned range = 1u << rand_r(seed) % 8; /* small classes are more frequent */
    return (unsigned)rand_r(seed) % (range < MEMRT__CLASSES ? range : MEMRT__CLASSES);
}

/// Take and give blocks of all classes in random order.
static void churn_blocks(memrt__thread_t *self, unsigned seed, size_t steps)
{
    enum { OWN = 300 };
    void *blocks[OWN] = {NULL};
    unsigned classes[OWN] = {0};
    for (size_t step = 0; step < steps; step++) {
        size_t i = (size_t)rand_r(&seed) % OWN;
        if (blocks[i] != NULL) {
            memrt__thread_cache_give(self, classes[i], blocks[i]);
            blocks[i] = NULL;
        } else {
            classes[i] = choose_class(&seed);
            blocks[i] = memrt__thread_cache_take(self, classes[i]);
            REQUIRE(blocks[i] != NULL);
            memset(blocks[i], 0xEE,
                   memrt__size_min(MEMRT_HEADER_SIZE, memrt__class_bytes(classes[i])));
        }
        if (step % 64 == 0) {
            verify_cache(self);
        }
    }
    for (size_t i = 0; i < OWN; i++) {
        if (blocks[i] != NULL) {
            memrt__thread_cache_give(self, classes[i], blocks[i]);
        }
    }
    verify_cache(self);
}

TEST_EACH(thread_cache_stays_within_limits_under_random_use, 5)
{
    memrt__thread_t *self = empty_caches();
    churn_blocks(self, (unsigned)index + 1, 30000);
}

TEST(thread_cache_stays_within_limits_with_all_size_classes)
{
    memrt__thread_t *self = empty_caches();
    void *blocks[MEMRT__CLASSES];
    for (unsigned class = MEMRT__CLASSES; class-- > 0;) {
        blocks[class] = memrt__thread_cache_take(self, class);
        ck_assert_ptr_nonnull(blocks[class]);
        verify_cache(self);
    }
    for (int round = 0; round < 3; round++) {
        for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
            memrt__thread_cache_give(self, class, blocks[class]);
            verify_cache(self);
        }
        for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
            blocks[class] = memrt__thread_cache_take(self, class);
            verify_cache(self);
        }
    }
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        memrt__thread_cache_give(self, class, blocks[class]);
    }
    verify_cache(self);
}

TEST(last_freed_block_is_reused_first_without_central_lock)
{
    memrt__thread_t *self = empty_caches();
    void *first = memrt__thread_cache_take(self, 10), *second = memrt__thread_cache_take(self, 10);
    memrt__thread_cache_give(self, 10, first);
    memrt__thread_cache_give(self, 10, second);
    memrt__lock(MEMRT__RANK_CLASS + 10); /* a look at the central list would wait for ever */
    ck_assert_ptr_eq(memrt__thread_cache_take(self, 10), second);
    ck_assert_ptr_eq(memrt__thread_cache_take(self, 10), first);
    memrt__unlock(MEMRT__RANK_CLASS + 10);
    memrt__thread_cache_give(self, 10, first);
    memrt__thread_cache_give(self, 10, second);
}

TEST(thread_that_only_frees_caches_at_most_64_kib)
{
    memrt__thread_t *self = empty_caches();
    unsigned class = memrt__class_of_data(1024);
    enum { MANY = 1000 };
    void *blocks[MANY];
    bool clean;
    for (size_t i = 0; i < MANY; i++) {
        blocks[i] = memrt__central_list_take_one(class, &clean);
        ck_assert_ptr_nonnull(blocks[i]);
    }
    size_t kept = memrt__thread_cache_cached();
    for (size_t i = 0; i < MANY; i++) {
        memrt__thread_cache_give(self, class, blocks[i]);
        ck_assert_uint_le(memrt__thread_cache_cached() - kept, (size_t)64 << 10);
    }
    verify_cache(self);
}

TEST(thread_cache_grows_to_hold_blocks_reused_each_round)
{
    memrt__thread_t *self = empty_caches();
    unsigned class = memrt__class_of_data(1024);
    enum { MANY = 200 };
    void *blocks[MANY];
    for (int round = 0; round < 40; round++) {
        for (size_t i = 0; i < MANY; i++) {
            blocks[i] = memrt__thread_cache_take(self, class);
            ck_assert_ptr_nonnull(blocks[i]);
        }
        for (size_t i = 0; i < MANY; i++) {
            memrt__thread_cache_give(self, class, blocks[i]);
        }
    }
    ck_assert_uint_ge(memrt__bin_count(self, class), MANY);
    verify_cache(self);
}

/// At the time of each free little is in use. The thread cache still keeps the blocks, because as
/// much was in use before and will be again.
TEST(blocks_reused_in_bursts_stay_in_thread_cache)
{
    memrt__thread_t *self = empty_caches();
    enum { MANY = 64, SIZE = 32 << 10 };
    if (!memrt__options.cache || !MEMRT_COUNTERS) {
        return; /* blocks bypass the cache, or the memory in use is unknown */
    }
    for (int round = 0; round < 40; round++) {
        memrt_meminfo_t *blocks[MANY];
        for (size_t i = 0; i < MANY; i++) {
            blocks[i] = api->allocate(SIZE);
            ck_assert_ptr_nonnull(blocks[i]);
        }
        for (size_t i = 0; i < MANY; i++) {
            api->release(blocks[i]);
        }
    }
    ck_assert_uint_ge(memrt__bin_count(self, memrt__class_of_data(SIZE)), MANY - 1);
    memrt__thread_cache_drain(self);
    verify_cache(self);
}

TEST(small_process_caches_single_large_block)
{
    memrt__thread_t *self = empty_caches();
    unsigned first = memrt__class_of_data(600000), second = memrt__class_of_data(900000);
    for (int round = 0; round < 4; round++) {
        void *a = memrt__thread_cache_take(self, first),
             *b = memrt__thread_cache_take(self, second);
        ck_assert(a != NULL && b != NULL);
        memrt__thread_cache_give(self, first, a);
        memrt__thread_cache_give(self, second, b);
        ck_assert_uint_eq(memrt__bin_count(self, first), 0);
        ck_assert_uint_eq(memrt__bin_count(self, second), 1);
    }
    verify_cache(self);
}

TEST(drain_empties_thread_cache_and_returns_byte_count)
{
    memrt__thread_t *self = empty_caches();
    size_t others = memrt__thread_cache_cached();
    churn_blocks(self, 9, 3000);
    size_t kept = memrt__thread_cache_cached() - others;
    ck_assert_uint_gt(kept, 0);
    ck_assert_uint_eq(memrt__thread_cache_drain(self), kept);
    ck_assert_uint_eq(memrt__thread_cache_cached(), others);
    ck_assert_uint_eq(memrt__thread_cache_drain(self), 0);
    ck_assert_uint_eq(self->cache.limits[0] + self->cache.limits[1], 0);
    verify_cache(self);
}

static void churn_in_thread(size_t index, void *context)
{
    (void)context;
    churn_blocks(memrt__thread_self(), (unsigned)index, 3000);
}

TEST(thread_exit_leaves_no_cached_blocks)
{
    empty_caches();
    size_t kept = memrt__thread_cache_cached(), central = memrt__central_list_cached();
    crew_run(4, churn_in_thread, NULL);
    memrt__handover_purge(true);
    ck_assert_uint_eq(memrt__thread_cache_cached(), kept);
    ck_assert_uint_eq(memrt__central_list_cached(), central);
}

/// Thread that the test stops and continues with a barrier, and its action after a request to
/// drain.
typedef struct guest {
    pthread_barrier_t turn;
    void (*act)(memrt__thread_t *self, void *block);
    memrt__thread_t *record;
    size_t acted;
} guest_t;

#define VISITED 10u /* size class used by `act` */

static void *use_guest_cache(void *context)
{
    guest_t *guest = context;
    guest->record = memrt__thread_self();
    void *block = memrt__thread_cache_take(guest->record, VISITED);
    memrt__block_set_next(block, NULL);
    churn_blocks(guest->record, 7, 3000);
    pthread_barrier_wait(&guest->turn); /* the guest keeps some blocks; the test requests a drain */
    pthread_barrier_wait(&guest->turn);
    guest->act(guest->record, block);
    memrt__store_release(&guest->acted, 1);
    pthread_barrier_wait(&guest->turn); /* the test reads the bins */
    pthread_barrier_wait(&guest->turn);
    verify_cache(guest->record);
    return NULL;
}

static void free_block(memrt__thread_t *self, void *block)
{
    memrt__thread_cache_give(self, VISITED, block);
}

static void overfill_bin(memrt__thread_t *self, void *block)
{
    while (memrt__bin_count(self, VISITED) != 0) {
        void *next = memrt__thread_cache_take(self, VISITED);
        memrt__block_set_next(next, block);
        block = next;
    }
    void *more = memrt__thread_cache_take(self, VISITED);
    memrt__thread_cache_give(self, VISITED, more);
    while (block != NULL) {
        void *next = memrt__block_next(block);
        memrt__thread_cache_give(self, VISITED, block);
        block = next;
    }
}

/// Return the bytes in the guest's bins, except class VISITED.
static size_t count_cached_bytes(const guest_t *guest)
{
    size_t bytes = 0;
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        bytes += class == VISITED ? 0
                                  : memrt__bin_count_of_any_thread(guest->record, class) *
                                        memrt__class_bytes(class);
    }
    return bytes;
}

static pthread_t start_guest(guest_t *guest)
{
    pthread_t thread;
    pthread_barrier_init(&guest->turn, NULL, 2);
    ck_assert_int_eq(pthread_create(&thread, NULL, use_guest_cache, guest), 0);
    pthread_barrier_wait(&guest->turn);
    return thread;
}

static void join_guest(guest_t *guest, pthread_t thread)
{
    pthread_barrier_wait(&guest->turn);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&guest->turn);
}

/// Read the bytes in the guest's bins: before the request to drain, after the request, and after
/// the guest's action.
static void drain_guest(void (*act)(memrt__thread_t *, void *), size_t kept[3])
{
    guest_t guest = {.act = act};
    memrt__thread_t *self = empty_caches();
    pthread_t thread = start_guest(&guest);
    kept[0] = count_cached_bytes(&guest);
    memrt__thread_cache_drain_others(self);
    kept[1] = count_cached_bytes(&guest);
    pthread_barrier_wait(&guest.turn);
    pthread_barrier_wait(&guest.turn);
    kept[2] = count_cached_bytes(&guest);
    join_guest(&guest, thread);
}

TEST(drain_request_empties_other_bins_at_next_free)
{
    size_t kept[3];
    drain_guest(free_block, kept);
    ck_assert_uint_gt(kept[0], 0);
    ck_assert_uint_eq(kept[2], 0);
}

TEST(drain_request_empties_other_bins_when_a_bin_runs_empty)
{
    size_t kept[3];
    drain_guest(overfill_bin, kept);
    ck_assert_uint_gt(kept[0], 0);
    ck_assert_uint_eq(kept[2], 0);
}

TEST(idle_thread_keeps_cache_within_limit_after_drain_request)
{
    size_t kept[3];
    drain_guest(free_block, kept);
    ck_assert_uint_eq(kept[1], kept[0]);
    ck_assert_uint_le(kept[1], MEMRT__THREAD_CACHE_MAX);
}

static void request_drain(memrt__thread_t *thread, unsigned class)
{
    memrt__fetch_add_relaxed(&thread->cache.bins.room[class], (size_t)0 - MEMRT__DRAIN_REQUEST);
}

/// The request to drain stops halfway. The thread must not start again with new limits before all
/// bins have the request.
TEST(thread_waits_at_free_until_drain_request_is_complete)
{
    guest_t guest = {.act = free_block};
    empty_caches();
    pthread_t thread = start_guest(&guest);
    memrt__lock(MEMRT__RANK_THREADS);
    memrt__store_relaxed(&guest.record->cache.must_empty, 1);
    request_drain(guest.record, VISITED);
    pthread_barrier_wait(&guest.turn);
    for (int i = 0; i < 2000 && memrt__load_acquire(&guest.acted) == 0; i++) {
        sched_yield();
    }
    size_t acted = memrt__load_acquire(&guest.acted);
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        request_drain(guest.record, class);
    }
    memrt__unlock(MEMRT__RANK_THREADS);
    pthread_barrier_wait(&guest.turn);
    join_guest(&guest, thread);
    ck_assert_uint_eq(acted, 0);
}

/// A fork may keep the lock away while a thread finds a request to drain.
TEST(bin_with_an_open_request_keeps_its_blocks)
{
    memrt__thread_t *self = empty_caches();
    memrt__bins_t *bins = &self->cache.bins;
    void *blocks[2];
    for (int i = 0; i < 2; i++) {
        blocks[i] = memrt__thread_cache_take(self, VISITED);
    }
    size_t before = memrt__bin_count(self, VISITED);
    memrt__thread_cache_give(self, VISITED, blocks[0]);
    request_drain(self, VISITED);
    ck_assert(memrt__bin_is_full(self, VISITED));
    size_t limit = bins->limit[VISITED];
    ck_assert_uint_gt(limit, memrt__bin_count(self, VISITED));
    memrt__thread_cache_give(self, VISITED, blocks[1]);
    ck_assert_uint_eq(memrt__bin_count(self, VISITED), before + 2);
    ck_assert_uint_eq(bins->limit[VISITED], limit);
    memrt__thread_cache_drain(self);
    ck_assert_uint_eq(memrt__bin_count(self, VISITED), 0);
    ck_assert(memrt__bin_is_full(self, VISITED));
    verify_cache(self);
}

/// Verify the bins, unless a request to drain is pending.
static void verify_drain_flag(const memrt__thread_t *self)
{
    memrt__lock(MEMRT__RANK_THREADS);
    if (memrt__load_relaxed(&self->cache.must_empty) == 0) {
        verify_cache(self);
    }
    memrt__unlock(MEMRT__RANK_THREADS);
}

/// Take and give blocks while all threads, including this thread, request drains.
static void churn_while_drained(size_t index, void *context)
{
    enum { OWN = 50, STEPS = 20000 };
    void *blocks[OWN] = {NULL};
    unsigned seed = (unsigned)index + 1, classes[OWN] = {0};
    memrt__thread_t *self = memrt__thread_self();
    for (size_t step = 0; step < STEPS; step++) {
        size_t i = (size_t)rand_r(&seed) % OWN;
        if (step % 100 == index) {
            memrt__thread_cache_drain_others(self);
        }
        if (step % 10 == 0) {
            verify_drain_flag(self);
        }
        if (blocks[i] != NULL) {
            REQUIRE(*(size_t *)blocks[i] == index);
            memrt__thread_cache_give(self, classes[i], blocks[i]);
            blocks[i] = NULL;
        } else {
            classes[i] = choose_class(&seed);
            blocks[i] = memrt__thread_cache_take(self, classes[i]);
            REQUIRE(blocks[i] != NULL);
            *(size_t *)blocks[i] = index;
        }
    }
    for (size_t i = 0; i < OWN; i++) {
        if (blocks[i] != NULL) {
            memrt__thread_cache_give(self, classes[i], blocks[i]);
        }
    }
    pthread_barrier_wait(context); /* no requests from here on */
    memrt__thread_cache_drain(self);
    verify_cache(self);
    churn_blocks(self, seed, 1000);
}

TEST(mutual_drain_requests_lose_no_block_and_no_count)
{
    empty_caches();
    size_t kept = memrt__thread_cache_cached(), central = memrt__central_list_cached();
    pthread_barrier_t together;
    pthread_barrier_init(&together, NULL, 4);
    crew_run(4, churn_while_drained, &together);
    pthread_barrier_destroy(&together);
    memrt__handover_purge(true);
    ck_assert_uint_eq(memrt__thread_cache_cached(), kept);
    ck_assert_uint_eq(memrt__central_list_cached(), central);
}

TEST(failed_bin_refill_leaves_bin_empty_and_usable)
{
    memrt__thread_t *self = empty_caches();
    enum { MOST = 1000 };
    static void *blocks[MOST];
    unsigned class = MEMRT__CLASSES - 1;
    size_t count = 0;
    kernel_refuse(KERNEL_MAP, 0, SIZE_MAX);
    while (count < MOST && (blocks[count] = memrt__thread_cache_take(self, class)) != NULL) {
        count++;
    }
    ck_assert_uint_lt(count, MOST);
    ck_assert_uint_eq(memrt__bin_count(self, class), 0);
    verify_cache(self);
    ck_assert_ptr_null(memrt__thread_cache_take(self, class));
    kernel_obey();
    blocks[count] = memrt__thread_cache_take(self, class);
    ck_assert_ptr_nonnull(blocks[count]);
    for (size_t i = 0; i <= count; i++) {
        memrt__thread_cache_give(self, class, blocks[i]);
        verify_cache(self);
    }
}

/// Thread that stops in the middle of a change to a bin.
typedef struct still {
    pthread_barrier_t together;
    memrt__thread_t *record;
    size_t short_by;
} still_t;

static void *hold_three_blocks(void *context)
{
    still_t *still = context;
    void *blocks[3];
    still->record = memrt__thread_self();
    for (size_t i = 0; i < 3; i++) {
        blocks[i] = memrt__thread_cache_take(still->record, 20);
    }
    for (size_t i = 0; i < 3; i++) {
        memrt__thread_cache_give(still->record, 20, blocks[i]);
    }
    size_t *room = &still->record->cache.bins.room[20];
    *room += still->short_by;
    pthread_barrier_wait(&still->together);
    pthread_barrier_wait(&still->together);
    *room -= still->short_by;
    return NULL;
}

/// Use the stopped thread's record in a thread of the child.
static void *use_thread_record(void *context)
{
    still_t *still = context;
    memrt__thread_t *self = memrt__thread_self();
    REQUIRE(self == still->record);
    verify_cache(self);
    churn_blocks(self, 5, 5000);
    memrt__thread_cache_drain(self);
    return NULL;
}

static void use_thread_records(void *context)
{
    still_t *still = context;
    pthread_t thread;
    memrt__lock(MEMRT__RANK_THREADS);
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        t->in_use |= t != still->record;
    }
    memrt__unlock(MEMRT__RANK_THREADS);
    REQUIRE(pthread_create(&thread, NULL, use_thread_record, still) == 0);
    pthread_join(thread, NULL);
}

/// Index 0: the fork happens after a block was pushed and before the count changed. Index 1: after
/// a block was taken.
TEST_EACH(fork_child_repairs_bins_that_threads_were_changing, 2)
{
    if (SUITE_THREAD_SANITIZER) { /* does not follow threads into a child */
        return;
    }
    empty_caches();
    still_t still = {.short_by = index == 0 ? 1 : (size_t)-1};
    pthread_t thread;
    pthread_barrier_init(&still.together, NULL, 2);
    ck_assert_int_eq(pthread_create(&thread, NULL, hold_three_blocks, &still), 0);
    pthread_barrier_wait(&still.together);
    child_expect_success(use_thread_records, &still);
    pthread_barrier_wait(&still.together);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&still.together);
}
