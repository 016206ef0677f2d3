#include "support/suite.h"

#include <limits.h>
#include <pthread.h>
#include <unistd.h>

#include "runtime/alloc/heap/size_class.h"
#include "runtime/alloc/heap/span.h"
#include "runtime/config/fault_injection.h"
#include "runtime/config/options.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"
#include "runtime/stats/stats.h"
#include "runtime/thread/thread.h"
#include "support/books.h"
#include "support/child.h"
#include "support/crew.h"

static void *alloc_and_free(void *context)
{
    (void)context;
    void *data = api->block_alloc(NULL, 1000);
    REQUIRE(data != NULL);
    api->block_free(NULL, data, 1000);
    return NULL;
}

static void run_one_after_another(size_t threads)
{
    for (size_t i = 0; i < threads; i++) {
        pthread_t thread;
        ck_assert_int_eq(pthread_create(&thread, NULL, alloc_and_free, NULL), 0);
        pthread_join(thread, NULL);
    }
}

TEST(short_lived_threads_do_not_grow_records_or_memory)
{
    run_one_after_another(100);
    size_t records = count_thread_records(false), resident = memrt__os_resident();
    memrt_stats_t before = stats_of(NULL);
    run_one_after_another(10000);
    ck_assert_uint_eq(count_thread_records(false), records);
    ck_assert_uint_eq(stats_of(NULL).alloc, before.alloc + 10000);
    ck_assert_uint_le(stats_of(NULL).cached, before.cached);
    if (suite_measures_memory()) {
        size_t few = 256 * memrt__os_page_size(); /* shows a leak of 128 bytes per thread */
        ck_assert_uint_ne(resident, 0);
        ck_assert_uint_le(memrt__os_resident(), resident + few);
    }
}

static void alloc_in_crew(size_t index, void *context)
{
    pthread_barrier_wait(context);
    alloc_and_free(NULL);
    (void)index;
    pthread_barrier_wait(context);
}

TEST(thread_records_are_reused_by_later_threads)
{
    pthread_barrier_t together;
    pthread_barrier_init(&together, NULL, 8);
    crew_run(8, alloc_in_crew, &together);
    size_t records = count_thread_records(false);
    ck_assert_uint_ge(records, 8);
    for (int round = 0; round < 10; round++) {
        crew_run(8, alloc_in_crew, &together);
    }
    ck_assert_uint_le(count_thread_records(false), records + 1);
    pthread_barrier_destroy(&together);
}

TEST(ended_thread_returns_its_record)
{
    alloc_and_free(NULL); /* creates the record of the main thread */
    size_t in_use = count_thread_records(true);
    run_one_after_another(3);
    ck_assert_uint_eq(count_thread_records(true), in_use);
}

static void *allocate_and_stay(void *together)
{
    alloc_and_free(NULL);
    pthread_barrier_wait(together);
    pthread_barrier_wait(together);
    return NULL;
}

static void expect_one_record_in_use(void *context)
{
    (void)context;
    REQUIRE(count_thread_records(true) == 1);
}

TEST(forked_child_frees_records_of_missing_threads)
{
    pthread_t thread;
    pthread_barrier_t together;
    pthread_barrier_init(&together, NULL, 2);
    alloc_and_free(NULL); /* creates the record of the main thread */
    ck_assert_int_eq(pthread_create(&thread, NULL, allocate_and_stay, &together), 0);
    pthread_barrier_wait(&together);
    ck_assert_uint_ge(count_thread_records(true), 2);
    child_expect_success(expect_one_record_in_use, NULL);
    pthread_barrier_wait(&together);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&together);
}

static void *free_in_key_destructor(void *data)
{
    static pthread_key_t key;
    REQUIRE(pthread_key_create(&key, (void (*)(void *))data) == 0);
    alloc_and_free(NULL);
    REQUIRE(pthread_setspecific(key, &key) == 0);
    return NULL;
}

static void alloc_at_exit(void *key)
{
    REQUIRE(memrt__thread_or_null() == NULL); /* another thread may have the record by now */
    alloc_and_free(NULL);
    pthread_key_delete(*(pthread_key_t *)key);
}

TEST(allocation_in_thread_destructor_leaves_no_record_in_use)
{
    alloc_and_free(NULL);
    size_t in_use = count_thread_records(true);
    pthread_t thread;
    void *last = (void *)(uintptr_t)alloc_at_exit;
    ck_assert_int_eq(pthread_create(&thread, NULL, free_in_key_destructor, last), 0);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(count_thread_records(true), in_use);
}

/* Under ThreadSanitizer, a thread cannot act in the last round. In that round memrt gives back a
 * record that was taken in the round before. */
#define ROUNDS (PTHREAD_DESTRUCTOR_ITERATIONS - 2 * SUITE_THREAD_SANITIZER)

static pthread_key_t rounds_key;

/// Act as a library that frees memory in each round of thread-specific destructors.
static void alloc_in_each_round(void *rounds)
{
    alloc_and_free(NULL);
    if (--*(int *)rounds > 0) {
        REQUIRE(pthread_setspecific(rounds_key, rounds) == 0);
    }
}

static void *end_in_rounds(void *context)
{
    static _Thread_local int rounds;
    rounds = ROUNDS;
    alloc_and_free(NULL);
    REQUIRE(pthread_setspecific(rounds_key, &rounds) == 0);
    return context;
}

static void run_threads(size_t threads, void *(*work)(void *))
{
    for (size_t i = 0; i < threads; i++) {
        pthread_t thread;
        ck_assert_int_eq(pthread_create(&thread, NULL, work, NULL), 0);
        pthread_join(thread, NULL);
    }
}

TEST(records_taken_in_the_last_destructor_round_are_reused)
{
    alloc_and_free(NULL); /* creates memrt's key before the test's key */
    ck_assert_int_eq(pthread_key_create(&rounds_key, alloc_in_each_round), 0);
    run_threads(20, end_in_rounds);
    size_t records = count_thread_records(false), resident = memrt__os_resident();
    memrt_stats_t before = stats_of(NULL);
    run_threads(2000, end_in_rounds);
    ck_assert_uint_eq(count_thread_records(false), records);
    ck_assert_uint_eq(stats_of(NULL).alloc, before.alloc + (uint64_t)2000 * (1 + ROUNDS));
    ck_assert_uint_eq(stats_of(NULL).live, before.live);
    if (suite_measures_memory()) {
        ck_assert_uint_le(memrt__os_resident(), resident + ((size_t)4 << 20));
    }
    pthread_key_delete(rounds_key);
}

TEST(release_unused_empties_records_of_dead_threads)
{
    if (!memrt__options.cache || memrt__options.check) { /* only the heap caches */
        return;
    }
    alloc_and_free(NULL);
    ck_assert_int_eq(pthread_key_create(&rounds_key, alloc_in_each_round), 0);
    size_t in_use = count_thread_records(true);
    run_threads(1, end_in_rounds);
    ck_assert_uint_eq(count_thread_records(true), in_use + !SUITE_THREAD_SANITIZER);
    api->release_unused();
    ck_assert_uint_eq(count_thread_records(true), in_use);
    ck_assert_uint_eq(stats_of(NULL).cached, 0);
    pthread_key_delete(rounds_key);
}

/// Allocate on a thread without a record: every memory request fails, except the request for the
/// block.
static void alloc_without_record(size_t index, void *context)
{
    void **data = context;
    memrt_failure_plan_t plan = {
        .struct_size = sizeof(plan), .nth = 2, .every = 1, .this_thread_only = 1};
    if (index == 0) {
        memrt__fault_set(&plan);
        *data = api->block_alloc(NULL, 3000);
        memrt__fault_set(NULL);
        REQUIRE(memrt__thread_or_null() == NULL);
    }
}

/// Mark all waiting records as in use, so that the next thread needs a new record.
static void reserve_thread_records(bool taken[], bool take)
{
    size_t i = 0;
    memrt__lock(MEMRT__RANK_THREADS);
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next, i++) {
        if (take) {
            taken[i] = !t->in_use;
            t->in_use = true;
        } else if (taken[i]) {
            t->in_use = false;
        }
    }
    memrt__unlock(MEMRT__RANK_THREADS);
}

static void *alloc_while_records_are_refused(void)
{
    bool taken[256] = {false};
    void *data = NULL;
    alloc_and_free(NULL);
    memrt__thread_reap(); /* gives back the records of dead threads */
    ck_assert_uint_le(count_thread_records(false), 256);
    reserve_thread_records(taken, true);
    crew_run(1, alloc_without_record, &data);
    reserve_thread_records(taken, false);
    ck_assert_ptr_nonnull(data);
    return data;
}

TEST(thread_without_a_record_counts_in_policy_and_process)
{
    if (api->tracking_enabled()) { /* the live set would get no memory either */
        return;
    }
    memrt_policy_t *policy = api->policy_default();
    memrt_stats_t own = stats_of(policy), all = stats_of(NULL);
    void *data = alloc_while_records_are_refused();
    ck_assert_uint_eq(stats_of(policy).live, own.live + 3000);
    ck_assert_uint_eq(stats_of(NULL).live, all.live + 3000);
    ck_assert_uint_eq(stats_of(NULL).alloc, all.alloc + 2);
    memrt_stats_t now = stats_of(NULL);
    ck_assert_uint_eq(now.reserved - now.cached,
                      stats_of(policy).reserved - own.reserved + all.reserved - all.cached);
    api->block_free(NULL, data, 3000);
    ck_assert_uint_eq(stats_of(NULL).live, all.live);
}

TEST(bytes_past_the_gauges_cause_a_peak_error)
{
    if (api->tracking_enabled()) { /* the live set would get no memory either */
        return;
    }
    memrt__options.peak_mode = 0;
    alloc_and_free(NULL);
    void *data = alloc_while_records_are_refused();
    ck_assert_uint_gt(stats_of(NULL).peak_error, 0);
    ck_assert_uint_ge(stats_of(NULL).peak, 3000);
    api->block_free(NULL, data, 3000);
}

TEST(thread_without_a_shard_counts_in_the_shared_shard)
{
    if (api->tracking_enabled()) { /* the live set would get no memory either */
        return;
    }
    enum { POLICIES = MEMRT__CHUNK + 1 };
    memrt_policy_t *policies[POLICIES];
    for (size_t i = 0; i < POLICIES; i++) {
        ck_assert_int_eq(api->policy_new(NULL, &policies[i]), MEMRT_OK);
    }
    memrt_policy_t *last = policies[POLICIES - 1];
    ck_assert_uint_ge(api->policy_index(last), MEMRT__CHUNK);
    memrt_failure_plan_t plan = {
        .struct_size = sizeof(plan), .nth = 2, .every = 1, .this_thread_only = 1};
    alloc_and_free(NULL); /* the thread has a record */
    uint64_t live = stats_of(NULL).live;
    memrt__fault_set(&plan);
    void *data = api->block_alloc(last, 500);
    ck_assert_ptr_nonnull(data);
    ck_assert_uint_eq(stats_of(last).live, 500);
    ck_assert_uint_eq(stats_of(NULL).live, live + 500);
    plan.nth = 1;
    memrt__fault_set(&plan);
    api->block_free(last, data, 500);
    memrt__fault_set(NULL);
    ck_assert_ptr_null(memrt__thread_shard(memrt__self, api->policy_index(last)));
    ck_assert_uint_eq(stats_of(last).live, 0);
    ck_assert_uint_eq(stats_of(last).free, 1);
    for (size_t i = 0; i < POLICIES; i++) {
        api->policy_release(policies[i]);
    }
}

/// Check that a member that allocations read is not at a place of a page where large blocks begin.
static void check_place(const void *read)
{
    size_t at = (size_t)read % 4096;
    REQUIRE(at >= MEMRT_HEADER_SIZE + MEMRT__START_MAX + MEMRT__CACHE_LINE);
}

static void check_places_of_record(size_t index, void *context)
{
    (void)index;
    (void)context;
    REQUIRE(memrt__thread_self() != NULL);
    check_place(&memrt__self->homes[0]);
    check_place(&memrt__self->first.alloc_left);
    for (unsigned class = memrt__class_of_data(32 << 10); class < MEMRT__CLASS_TINY; class++) {
        check_place(&memrt__self->cache.bins.head[class]);
        check_place(&memrt__self->cache.bins.room[class]);
    }
}

TEST(records_and_large_blocks_have_other_places_in_pages)
{
    check_places_of_record(0, NULL);
    crew_run(8, check_places_of_record, NULL);
}
