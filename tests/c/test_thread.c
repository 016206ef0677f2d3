#include "support/suite.h"

#include <pthread.h>
#include <unistd.h>

#include "runtime/base/failure.h"
#include "runtime/base/lock.h"
#include "runtime/base/options.h"
#include "runtime/base/os.h"
#include "runtime/stats/stats.h"
#include "runtime/stats/thread.h"
#include "support/books.h"
#include "support/child.h"
#include "support/crew.h"

static size_t count_records(bool in_use_only)
{
    size_t count = 0;
    memrt__lock(MEMRT__RANK_THREADS);
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        count += !in_use_only || t->in_use;
    }
    memrt__unlock(MEMRT__RANK_THREADS);
    return count;
}

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

TEST(ten_thousand_short_lived_threads_leave_records_and_memory_flat)
{
    run_one_after_another(100);
    size_t records = count_records(false), resident = memrt__os_resident();
    memrt_stats_t before = stats_of(NULL);
    run_one_after_another(10000);
    ck_assert_uint_eq(count_records(false), records);
    ck_assert_uint_eq(stats_of(NULL).alloc, before.alloc + 10000);
    ck_assert_uint_le(stats_of(NULL).cached, before.cached);
    if (suite_measures_memory()) {
        size_t few = 256 * memrt__os_page_size(); /* a leak of 128 bytes a thread shows */
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

TEST(there_are_as_many_records_as_threads_were_alive_at_once)
{
    pthread_barrier_t together;
    pthread_barrier_init(&together, NULL, 8);
    crew_run(8, alloc_in_crew, &together);
    size_t records = count_records(false);
    ck_assert_uint_ge(records, 8);
    for (int round = 0; round < 10; round++) {
        crew_run(8, alloc_in_crew, &together);
    }
    ck_assert_uint_le(count_records(false), records + 1);
    pthread_barrier_destroy(&together);
}

TEST(a_thread_that_ends_gives_its_record_back)
{
    alloc_and_free(NULL); /* the main thread has one */
    size_t in_use = count_records(true);
    run_one_after_another(3);
    ck_assert_uint_eq(count_records(true), in_use);
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
    REQUIRE(count_records(true) == 1);
}

TEST(records_of_threads_that_a_forked_child_does_not_have_can_be_taken_there)
{
    pthread_t thread;
    pthread_barrier_t together;
    pthread_barrier_init(&together, NULL, 2);
    alloc_and_free(NULL); /* the main thread has one */
    ck_assert_int_eq(pthread_create(&thread, NULL, allocate_and_stay, &together), 0);
    pthread_barrier_wait(&together);
    ck_assert_uint_ge(count_records(true), 2);
    child_expect_success(expect_one_record_in_use, NULL);
    pthread_barrier_wait(&together);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&together);
}

static void *free_late(void *data)
{
    static pthread_key_t key;
    REQUIRE(pthread_key_create(&key, (void (*)(void *))data) == 0);
    alloc_and_free(NULL);
    REQUIRE(pthread_setspecific(key, &key) == 0);
    return NULL;
}

static void alloc_at_exit(void *key)
{
    REQUIRE(memrt__self == NULL); /* its record may be another thread's by now */
    alloc_and_free(NULL);
    pthread_key_delete(*(pthread_key_t *)key);
}

TEST(a_thread_that_allocates_in_its_last_destructors_leaves_no_record_in_use)
{
    alloc_and_free(NULL);
    size_t in_use = count_records(true);
    pthread_t thread;
    void *last = (void *)(uintptr_t)alloc_at_exit;
    ck_assert_int_eq(pthread_create(&thread, NULL, free_late, last), 0);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(count_records(true), in_use);
}

/// Every thread refuses itself a record, by failing all requests but the block's own.
static void alloc_without_record(size_t index, void *context)
{
    void **data = context;
    memrt_failure_plan_t plan = {
        .struct_size = sizeof(plan), .nth = 2, .every = 1, .this_thread_only = 1};
    if (index == 0) {
        memrt__failure_set(&plan);
        *data = api->block_alloc(NULL, 3000);
        memrt__failure_set(NULL);
        REQUIRE(memrt__self == NULL);
    }
}

/// Have all records that wait taken, so that the next thread needs a new one.
static void take_records(bool taken[], bool take)
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
    ck_assert_uint_le(count_records(false), 256);
    take_records(taken, true);
    crew_run(1, alloc_without_record, &data);
    take_records(taken, false);
    ck_assert_ptr_nonnull(data);
    return data;
}

TEST(a_thread_that_gets_no_record_is_counted_for_its_policy_and_the_process)
{
    if (api->tracking_enabled()) { /* the list of what is live would get no memory, too */
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

TEST(the_peak_admits_an_error_once_bytes_went_past_the_gauges)
{
    if (api->tracking_enabled()) { /* the list of what is live would get no memory, too */
        return;
    }
    memrt__options.exact_peak = 0;
    alloc_and_free(NULL);
    void *data = alloc_while_records_are_refused();
    ck_assert_uint_gt(stats_of(NULL).peak_error, 0);
    ck_assert_uint_ge(stats_of(NULL).peak, 3000);
    api->block_free(NULL, data, 3000);
}

TEST(a_thread_without_memory_for_a_shard_is_counted_in_the_shared_one)
{
    if (api->tracking_enabled()) { /* the list of what is live would get no memory, too */
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
    memrt__failure_set(&plan);
    void *data = api->block_alloc(last, 500);
    ck_assert_ptr_nonnull(data);
    ck_assert_uint_eq(stats_of(last).live, 500);
    ck_assert_uint_eq(stats_of(NULL).live, live + 500);
    plan.nth = 1;
    memrt__failure_set(&plan);
    api->block_free(last, data, 500);
    memrt__failure_set(NULL);
    ck_assert_ptr_null(memrt__thread_shard(memrt__self, api->policy_index(last)));
    ck_assert_uint_eq(stats_of(last).live, 0);
    ck_assert_uint_eq(stats_of(last).free, 1);
    for (size_t i = 0; i < POLICIES; i++) {
        api->policy_release(policies[i]);
    }
}
