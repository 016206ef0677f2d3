#include "support/suite.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/alloc/allocator.h"
#include "runtime/alloc/cache.h"
#include "runtime/alloc/central.h"
#include "runtime/base/lock.h"
#include "runtime/base/options.h"
#include "support/child.h"
#include "support/crew.h"
#include "support/kernel.h"

static memrt__thread_t *begin(void)
{
    suite_set_decay(MEMRT__DECAY_NEVER);
    memrt__allocator_release_unused(&memrt__pool_allocator);
    memrt__thread_t *self = memrt__thread_self();
    REQUIRE(self != NULL);
    return self;
}

/// What stands in the header holds: each bin is as long as it says and no longer than its limit,
/// all together within what a thread may keep.
static void verify(const memrt__thread_t *self)
{
    size_t limits[2] = {0, 0};
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        const memrt__bin_t *bin = &self->bins[class];
        size_t length = 0;
        for (void *block = (void *)bin->head; block != NULL; block = *memrt__block_next(block)) {
            REQUIRE(memrt__pages_span_of(block)->class == class);
            length++;
        }
        REQUIRE(bin->bytes == memrt__class_bytes(class));
        size_t limit = memrt__load_relaxed(&bin->limit);
        REQUIRE(bin->count == length && length <= limit);
        limits[bin->bytes > MEMRT__CACHE_SMALL] += limit * bin->bytes;
    }
    REQUIRE(memcmp(self->limits, limits, sizeof(limits)) == 0);
    REQUIRE(limits[0] <= MEMRT__CACHE_SMALL_MAX && limits[1] <= MEMRT__CACHE_LARGE_MAX);
}

static unsigned next_class(unsigned *seed)
{
    unsigned range = 1u << rand_r(seed) % 8; /* often small ones */
    return (unsigned)rand_r(seed) % (range < MEMRT__CLASSES ? range : MEMRT__CLASSES);
}

/// Blocks of all classes come and go at random.
static void churn(memrt__thread_t *self, unsigned seed, size_t steps)
{
    enum { OWN = 300 };
    void *blocks[OWN] = {NULL};
    unsigned classes[OWN] = {0};
    for (size_t step = 0; step < steps; step++) {
        size_t i = (size_t)rand_r(&seed) % OWN;
        if (blocks[i] != NULL) {
            memrt__cache_give(self, classes[i], blocks[i]);
            blocks[i] = NULL;
        } else {
            classes[i] = next_class(&seed);
            blocks[i] = memrt__cache_take(self, classes[i]);
            REQUIRE(blocks[i] != NULL);
            memset(blocks[i], 0xEE,
                   memrt__size_min(MEMRT_HEADER_SIZE, self->bins[classes[i]].bytes));
        }
        if (step % 64 == 0) {
            verify(self);
        }
    }
    for (size_t i = 0; i < OWN; i++) {
        if (blocks[i] != NULL) {
            memrt__cache_give(self, classes[i], blocks[i]);
        }
    }
    verify(self);
}

TEST_EACH(a_thread_never_keeps_more_than_it_may, 5)
{
    memrt__thread_t *self = begin();
    churn(self, (unsigned)index + 1, 30000);
}

TEST(one_block_of_each_class_taken_leaves_no_more_kept_than_a_thread_may)
{
    memrt__thread_t *self = begin();
    void *blocks[MEMRT__CLASSES];
    for (unsigned class = MEMRT__CLASSES; class-- > 0;) {
        blocks[class] = memrt__cache_take(self, class);
        ck_assert_ptr_nonnull(blocks[class]);
        verify(self);
    }
    for (int round = 0; round < 3; round++) {
        for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
            memrt__cache_give(self, class, blocks[class]);
            verify(self);
        }
        for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
            blocks[class] = memrt__cache_take(self, class);
            verify(self);
        }
    }
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        memrt__cache_give(self, class, blocks[class]);
    }
    verify(self);
}

TEST(the_block_given_last_is_taken_first_without_a_look_at_what_threads_share)
{
    memrt__thread_t *self = begin();
    void *first = memrt__cache_take(self, 10), *second = memrt__cache_take(self, 10);
    memrt__cache_give(self, 10, first);
    memrt__cache_give(self, 10, second);
    memrt__lock(MEMRT__RANK_CLASS + 10); /* who looked would wait for ever */
    ck_assert_ptr_eq(memrt__cache_take(self, 10), second);
    ck_assert_ptr_eq(memrt__cache_take(self, 10), first);
    memrt__unlock(MEMRT__RANK_CLASS + 10);
    memrt__cache_give(self, 10, first);
    memrt__cache_give(self, 10, second);
}

TEST(a_thread_that_only_gives_keeps_a_batch)
{
    memrt__thread_t *self = begin();
    unsigned class = 16; /* 1 KiB */
    enum { MANY = 1000 };
    void *blocks[MANY];
    bool clean;
    for (size_t i = 0; i < MANY; i++) {
        blocks[i] = memrt__central_take_one(class, &clean);
        ck_assert_ptr_nonnull(blocks[i]);
    }
    size_t kept = memrt__cache_cached();
    for (size_t i = 0; i < MANY; i++) {
        memrt__cache_give(self, class, blocks[i]);
        ck_assert_uint_le(memrt__cache_cached() - kept, (size_t)64 << 10);
    }
    verify(self);
}

TEST(a_thread_that_takes_what_it_gives_soon_keeps_it_all)
{
    memrt__thread_t *self = begin();
    unsigned class = 16;
    enum { MANY = 200 };
    void *blocks[MANY];
    for (int round = 0; round < 40; round++) {
        for (size_t i = 0; i < MANY; i++) {
            blocks[i] = memrt__cache_take(self, class);
            ck_assert_ptr_nonnull(blocks[i]);
        }
        for (size_t i = 0; i < MANY; i++) {
            memrt__cache_give(self, class, blocks[i]);
        }
    }
    ck_assert_uint_ge(self->bins[class].count, MANY);
    verify(self);
}

/// By the time they come back little is in use, and as much will be again.
TEST(blocks_that_come_and_go_all_at_once_stay_with_their_thread)
{
    memrt__thread_t *self = begin();
    enum { MANY = 64, SIZE = 32 << 10 };
    if (!memrt__options.cache) {
        return; /* then the default policy's blocks come from elsewhere */
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
    ck_assert_uint_ge(self->bins[memrt__class_of_data(SIZE)].count, MANY - 1);
    memrt__cache_drain(self);
    verify(self);
}

TEST(a_process_with_little_in_use_keeps_one_large_block)
{
    memrt__thread_t *self = begin();
    unsigned first = memrt__class_of_data(600000), second = memrt__class_of_data(900000);
    for (int round = 0; round < 4; round++) {
        void *a = memrt__cache_take(self, first), *b = memrt__cache_take(self, second);
        ck_assert(a != NULL && b != NULL);
        memrt__cache_give(self, first, a);
        memrt__cache_give(self, second, b);
        ck_assert_uint_eq(self->bins[first].count, 0);
        ck_assert_uint_eq(self->bins[second].count, 1);
    }
    verify(self);
}

TEST(a_drain_gives_away_all_that_is_kept)
{
    memrt__thread_t *self = begin();
    size_t others = memrt__cache_cached();
    churn(self, 9, 3000);
    size_t kept = memrt__cache_cached() - others;
    ck_assert_uint_gt(kept, 0);
    ck_assert_uint_eq(memrt__cache_drain(self), kept);
    ck_assert_uint_eq(memrt__cache_cached(), others);
    ck_assert_uint_eq(memrt__cache_drain(self), 0);
    ck_assert_uint_eq(self->limits[0] + self->limits[1], 0);
    verify(self);
}

static void churn_in_thread(size_t index, void *context)
{
    (void)context;
    churn(memrt__thread_self(), (unsigned)index, 3000);
}

TEST(threads_that_end_leave_nothing_behind)
{
    begin();
    size_t kept = memrt__cache_cached(), central = memrt__central_cached();
    crew_run(4, churn_in_thread, NULL);
    ck_assert_uint_eq(memrt__cache_cached(), kept);
    ck_assert_uint_eq(memrt__central_cached(), central);
}

/// A thread that stops and goes on as it is told, and what it does when it was asked.
typedef struct guest {
    pthread_barrier_t turn;
    void (*act)(memrt__thread_t *self, void *block);
    memrt__thread_t *record;
    size_t acted;
} guest_t;

#define VISITED 10u /* the class that it acts on */

static void *visit(void *context)
{
    guest_t *guest = context;
    guest->record = memrt__thread_self();
    void *block = memrt__cache_take(guest->record, VISITED);
    *memrt__block_next(block) = NULL;
    churn(guest->record, 7, 3000);
    pthread_barrier_wait(&guest->turn); /* it keeps some blocks and is asked for them */
    pthread_barrier_wait(&guest->turn);
    guest->act(guest->record, block);
    memrt__store_release(&guest->acted, 1);
    pthread_barrier_wait(&guest->turn); /* what it keeps now is looked at */
    pthread_barrier_wait(&guest->turn);
    verify(guest->record);
    return NULL;
}

static void free_it(memrt__thread_t *self, void *block)
{
    memrt__cache_give(self, VISITED, block);
}

static void take_one_too_many(memrt__thread_t *self, void *block)
{
    while (self->bins[VISITED].count != 0) {
        void *next = memrt__cache_take(self, VISITED);
        *memrt__block_next(next) = block;
        block = next;
    }
    void *more = memrt__cache_take(self, VISITED);
    memrt__cache_give(self, VISITED, more);
    while (block != NULL) {
        void *next = *memrt__block_next(block);
        memrt__cache_give(self, VISITED, block);
        block = next;
    }
}

/// Bytes of all classes but that.
static size_t kept_by(const guest_t *guest)
{
    size_t bytes = 0;
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        const memrt__bin_t *bin = &guest->record->bins[class];
        bytes += class == VISITED ? 0 : memrt__load_relaxed(&bin->count) * bin->bytes;
    }
    return bytes;
}

static pthread_t begin_visit(guest_t *guest)
{
    pthread_t thread;
    pthread_barrier_init(&guest->turn, NULL, 2);
    ck_assert_int_eq(pthread_create(&thread, NULL, visit, guest), 0);
    pthread_barrier_wait(&guest->turn);
    return thread;
}

static void end_visit(guest_t *guest, pthread_t thread)
{
    pthread_barrier_wait(&guest->turn);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&guest->turn);
}

/// What a thread keeps before it is asked, after that, and after it acted.
static void ask_guest(void (*act)(memrt__thread_t *, void *), size_t kept[3])
{
    guest_t guest = {.act = act};
    memrt__thread_t *self = begin();
    pthread_t thread = begin_visit(&guest);
    kept[0] = kept_by(&guest);
    memrt__cache_ask_others(self);
    kept[1] = kept_by(&guest);
    pthread_barrier_wait(&guest.turn);
    pthread_barrier_wait(&guest.turn);
    kept[2] = kept_by(&guest);
    end_visit(&guest, thread);
}

TEST(a_thread_that_was_asked_gives_all_away_when_it_next_frees_a_block)
{
    size_t kept[3];
    ask_guest(free_it, kept);
    ck_assert_uint_gt(kept[0], 0);
    ck_assert_uint_eq(kept[2], 0);
}

TEST(a_thread_that_was_asked_gives_all_away_when_it_next_finds_a_bin_empty)
{
    size_t kept[3];
    ask_guest(take_one_too_many, kept);
    ck_assert_uint_gt(kept[0], 0);
    ck_assert_uint_eq(kept[2], 0);
}

TEST(a_thread_that_does_nothing_keeps_what_it_has_and_no_more_than_it_may)
{
    size_t kept[3];
    ask_guest(free_it, kept);
    ck_assert_uint_eq(kept[1], kept[0]);
    ck_assert_uint_le(kept[1], MEMRT__CACHE_THREAD_MAX);
}

/// Who asks is stopped in the middle: the thread must not begin anew before all limits are 0.
TEST(a_thread_that_was_asked_waits_until_all_is_said)
{
    guest_t guest = {.act = free_it};
    begin();
    pthread_t thread = begin_visit(&guest);
    memrt__lock(MEMRT__RANK_THREADS);
    memrt__store_relaxed(&guest.record->asked, 1);
    memrt__store_relaxed(&guest.record->bins[VISITED].limit, 0);
    pthread_barrier_wait(&guest.turn);
    for (int i = 0; i < 2000 && memrt__load_acquire(&guest.acted) == 0; i++) {
        sched_yield();
    }
    size_t acted = memrt__load_acquire(&guest.acted);
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        memrt__store_relaxed(&guest.record->bins[class].limit, 0);
    }
    memrt__unlock(MEMRT__RANK_THREADS);
    pthread_barrier_wait(&guest.turn);
    end_visit(&guest, thread);
    ck_assert_uint_eq(acted, 0);
}

/// While nobody asks, and nobody has.
static void verify_unasked(const memrt__thread_t *self)
{
    memrt__lock(MEMRT__RANK_THREADS);
    if (memrt__load_relaxed(&self->asked) == 0) {
        verify(self);
    }
    memrt__unlock(MEMRT__RANK_THREADS);
}

/// Blocks come and go while others ask, among them this thread.
static void churn_while_asked(size_t index, void *context)
{
    enum { OWN = 50, STEPS = 20000 };
    void *blocks[OWN] = {NULL};
    unsigned seed = (unsigned)index + 1, classes[OWN] = {0};
    memrt__thread_t *self = memrt__thread_self();
    for (size_t step = 0; step < STEPS; step++) {
        size_t i = (size_t)rand_r(&seed) % OWN;
        if (step % 100 == index) {
            memrt__cache_ask_others(self);
        }
        if (step % 10 == 0) {
            verify_unasked(self);
        }
        if (blocks[i] != NULL) {
            REQUIRE(*(size_t *)blocks[i] == index);
            memrt__cache_give(self, classes[i], blocks[i]);
            blocks[i] = NULL;
        } else {
            classes[i] = next_class(&seed);
            blocks[i] = memrt__cache_take(self, classes[i]);
            REQUIRE(blocks[i] != NULL);
            *(size_t *)blocks[i] = index;
        }
    }
    for (size_t i = 0; i < OWN; i++) {
        if (blocks[i] != NULL) {
            memrt__cache_give(self, classes[i], blocks[i]);
        }
    }
    pthread_barrier_wait(context); /* nobody asks any more */
    memrt__cache_drain(self);
    verify(self);
    churn(self, seed, 1000);
}

TEST(threads_that_ask_each_other_all_the_time_lose_no_block_and_no_count)
{
    begin();
    size_t kept = memrt__cache_cached(), central = memrt__central_cached();
    pthread_barrier_t together;
    pthread_barrier_init(&together, NULL, 4);
    crew_run(4, churn_while_asked, &together);
    pthread_barrier_destroy(&together);
    ck_assert_uint_eq(memrt__cache_cached(), kept);
    ck_assert_uint_eq(memrt__central_cached(), central);
}

TEST(a_bin_that_cannot_be_refilled_is_as_it_was)
{
    memrt__thread_t *self = begin();
    enum { MOST = 1000 };
    static void *blocks[MOST];
    unsigned class = MEMRT__CLASSES - 1;
    size_t count = 0;
    kernel_refuse(KERNEL_MAP, 0, SIZE_MAX);
    while (count < MOST && (blocks[count] = memrt__cache_take(self, class)) != NULL) {
        count++;
    }
    ck_assert_uint_lt(count, MOST);
    ck_assert_uint_eq(self->bins[class].count, 0);
    verify(self);
    ck_assert_ptr_null(memrt__cache_take(self, class));
    kernel_obey();
    blocks[count] = memrt__cache_take(self, class);
    ck_assert_ptr_nonnull(blocks[count]);
    for (size_t i = 0; i <= count; i++) {
        memrt__cache_give(self, class, blocks[i]);
        verify(self);
    }
}

/// A thread that stands still with a bin that it has not finished changing.
typedef struct still {
    pthread_barrier_t together;
    memrt__thread_t *record;
    size_t short_by;
} still_t;

static void *stand_still(void *context)
{
    still_t *still = context;
    void *blocks[3];
    still->record = memrt__thread_self();
    for (size_t i = 0; i < 3; i++) {
        blocks[i] = memrt__cache_take(still->record, 20);
    }
    for (size_t i = 0; i < 3; i++) {
        memrt__cache_give(still->record, 20, blocks[i]);
    }
    memrt__bin_t *bin = &still->record->bins[20];
    bin->count -= still->short_by;
    pthread_barrier_wait(&still->together);
    pthread_barrier_wait(&still->together);
    bin->count += still->short_by;
    return NULL;
}

/// Of the child's own threads one gets the record of the one that stood still.
static void *use_record(void *context)
{
    still_t *still = context;
    memrt__thread_t *self = memrt__thread_self();
    REQUIRE(self == still->record);
    verify(self);
    churn(self, 5, 5000);
    memrt__cache_drain(self);
    return NULL;
}

static void use_records(void *context)
{
    still_t *still = context;
    pthread_t thread;
    memrt__lock(MEMRT__RANK_THREADS);
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        t->in_use |= t != still->record;
    }
    memrt__unlock(MEMRT__RANK_THREADS);
    REQUIRE(pthread_create(&thread, NULL, use_record, still) == 0);
    pthread_join(thread, NULL);
}

/// Caught after the block was pushed and before it was counted, or after a block was taken.
TEST_EACH(bins_of_threads_caught_in_the_middle_by_a_fork_are_no_harm_to_the_child, 2)
{
    if (SUITE_THREAD_SANITIZER) { /* which follows no threads into a child */
        return;
    }
    begin();
    still_t still = {.short_by = index == 0 ? 1 : (size_t)-1};
    pthread_t thread;
    pthread_barrier_init(&still.together, NULL, 2);
    ck_assert_int_eq(pthread_create(&thread, NULL, stand_still, &still), 0);
    pthread_barrier_wait(&still.together);
    child_expect_success(use_records, &still);
    pthread_barrier_wait(&still.together);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&still.together);
}
