#include "support/suite.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/atomics.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"
#include "support/child.h"

enum { MOST = 32 };

/// Return the statistics of the thread with an id. The id is 0 if no such thread is listed.
static memrt_thread_stats_t read_thread(uint64_t id)
{
    memrt_thread_stats_t all[MOST], found = {0};
    size_t count = MOST;
    for (size_t i = 0; i < MOST; i++) {
        all[i].struct_size = sizeof(*all);
    }
    REQUIRE(api->threads(all, &count) == MEMRT_OK && count <= MOST);
    for (size_t i = 0; i < count; i++) {
        if (all[i].id == id) {
            REQUIRE(found.id == 0); /* each running thread is listed once */
            found = all[i];
        }
    }
    return found;
}

static memrt_thread_stats_t read_own_thread(void)
{
    return read_thread((uint64_t)syscall(SYS_gettid));
}

/// Result of a thread.
typedef struct work {
    memrt_policy_t *policy; ///< NULL: the default policy
    memrt_thread_stats_t seen;
    void *left; ///< block of 300 bytes
} work_t;

static void *work_on_blocks(void *context)
{
    work_t *work = context;
    void *block = api->block_alloc(work->policy, 1000);
    memrt_meminfo_t *mi = api->allocate(50);
    work->left = api->block_alloc(work->policy, 300);
    REQUIRE(block != NULL && mi != NULL && work->left != NULL);
    api->block_free(NULL, block, 0);
    api->release(mi);
    work->seen = read_own_thread();
    return NULL;
}

static void run_work(work_t *work)
{
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, work_on_blocks, work) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
}

TEST(thread_counts_its_own_allocations_and_frees)
{
    uint64_t before = memrt__os_wall_ns();
    work_t work = {0};
    run_work(&work);
    ck_assert_uint_ge(work.seen.started, before);
    ck_assert_uint_le(work.seen.started, memrt__os_wall_ns());
    ck_assert_uint_eq(work.seen.alloc, 3);
    ck_assert_uint_eq(work.seen.free, 2);
    ck_assert_uint_eq(work.seen.allocated, 1350);
    ck_assert_uint_eq(work.seen.freed, 1050);
    memrt_thread_stats_t own = read_own_thread();
    api->block_free(NULL, work.left, 0);
    memrt_thread_stats_t after = read_own_thread();
    ck_assert_uint_eq(after.free - own.free, 1);
    ck_assert_uint_eq(after.freed - own.freed, 300);
    ck_assert_uint_eq(after.allocated, own.allocated);
}

TEST(ended_thread_is_not_listed_and_its_record_starts_anew)
{
    work_t first = {0}, second = {0};
    run_work(&first);
    ck_assert_uint_eq(read_thread(first.seen.id).id, 0);
    run_work(&second); /* uses the record of the first thread */
    ck_assert_uint_eq(second.seen.alloc, 3);
    ck_assert_uint_eq(second.seen.free, 2);
    ck_assert(first.seen.id != second.seen.id || first.seen.started < second.seen.started);
    api->block_free(NULL, first.left, 0);
    api->block_free(NULL, second.left, 0);
}

TEST(destroyed_policy_leaves_the_counts_of_its_threads)
{
    memrt_thread_stats_t before = read_own_thread();
    memrt_policy_options_t options = {.struct_size = sizeof(options), .name = "short"};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    void *block = api->block_alloc(policy, 700);
    ck_assert_ptr_nonnull(block);
    api->block_free(policy, block, 0);
    api->policy_release(policy);
    api->release_unused(); /* sweeps the policy */
    memrt_thread_stats_t after = read_own_thread();
    ck_assert_uint_eq(after.allocated - before.allocated, 700);
    ck_assert_uint_eq(after.freed - before.freed, 700);
    ck_assert_uint_eq(after.alloc - before.alloc, 1);
}

static void expect_only_thread(void *context)
{
    memrt_thread_stats_t all[MOST];
    size_t count = MOST;
    for (size_t i = 0; i < MOST; i++) {
        all[i].struct_size = sizeof(*all);
    }
    REQUIRE(api->threads(all, &count) == MEMRT_OK && count == 1 && context == NULL);
    REQUIRE(all[0].id == (uint64_t)syscall(SYS_gettid));
}

TEST(forked_child_lists_its_only_thread)
{
    void *block = api->block_alloc(NULL, 100); /* makes the record */
    child_expect_success(expect_only_thread, NULL);
    api->block_free(NULL, block, 0);
}

TEST(threads_fills_the_elements_that_exist)
{
    memrt_thread_stats_t all[2] = {{.struct_size = sizeof(*all)}, {.struct_size = 1}};
    void *block = api->block_alloc(NULL, 100);
    size_t count = 0;
    ck_assert_int_eq(api->threads(NULL, &count), MEMRT_OK);
    ck_assert_uint_ge(count, 1);
    count = 1;
    ck_assert_int_eq(api->threads(all, &count), MEMRT_OK);
    ck_assert_uint_ne(all[0].id, 0);
    count = 2;
    ck_assert_int_eq(api->threads(all, &count), MEMRT_EINVAL);
    ck_assert_int_eq(api->threads(NULL, &count), MEMRT_EINVAL);
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(api->threads(all, NULL), MEMRT_EINVAL);
    api->block_free(NULL, block, 0);
}
