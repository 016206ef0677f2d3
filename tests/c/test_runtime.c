#include "support/suite.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance/pattern.h"
#include "runtime/base/atomics.h"
#include "runtime/config/options.h"
#include "runtime/runtime.h"
#include "support/books.h"
#include "support/child.h"
#include "support/crew.h"

static void start_runtime(size_t index, void *context)
{
    (void)index, (void)context;
    memrt__runtime_start();
    REQUIRE(memrt_get_api(MEMRT_ABI_MAJOR, NULL) == api);
}

TEST(runtime_can_be_started_by_several_threads)
{
    crew_run(4, start_runtime, NULL);
}

TEST(tracking_returns_the_previous_state)
{
    int was = api->tracking(1);
    ck_assert_int_eq(api->tracking_enabled(), 1);
    ck_assert_int_eq(api->tracking(1), 1);
    api->tracking(was);
    ck_assert_int_eq(api->tracking_enabled(), was);
}

#define FORKS 15
#define FORKERS 1
#define WORKERS 2

typedef struct forking {
    size_t stop;    ///< release store when all forks are done
    size_t working; ///< relaxed adds; workers inside their loop
    void *inherited[8];
    memrt_meminfo_t *named;
} forking_t;

static void work_in_child(forking_t *forking)
{
    for (int i = 0; i < 8; i++) {
        REQUIRE(pattern_holds(forking->inherited[i], 5000, (unsigned)i));
        forking->inherited[i] = api->block_realloc(NULL, forking->inherited[i], 2000000);
        REQUIRE(pattern_holds(forking->inherited[i], 5000, (unsigned)i));
        api->block_free(NULL, forking->inherited[i], 0);
    }
    REQUIRE(api->set_name(forking->named, "of the child") == MEMRT_OK);
    api->release(forking->named);
    memrt_policy_t *policy;
    memrt_live_t *list;
    size_t count;
    REQUIRE(api->policy_new(NULL, &policy) == MEMRT_OK);
    api->block_free(policy, api->block_alloc(policy, 100), 0);
    api->policy_release(policy);
    REQUIRE(api->live(&list, &count) == MEMRT_OK);
    api->live_free(list);
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    REQUIRE(api->stats_read(NULL, &stats) == MEMRT_OK);
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = 1};
    REQUIRE(api->fail_allocations(&plan) == MEMRT_OK);
    REQUIRE(api->block_alloc(NULL, 10) == NULL);
    REQUIRE(api->fail_allocations(NULL) == MEMRT_OK);
}

static void fork_and_wait(forking_t *forking)
{
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        child_start_watchdog(); /* ends a child stuck on a held lock */
        work_in_child(forking);
        _exit(0);
    }
    REQUIRE(child_wait(child) == 0);
}

TEST(option_set_takes_effect_at_once_and_in_option_rows)
{
    char why[200] = "";
    memrt_option_t row;
    ck_assert_int_eq(api->option_set("MEMRT_CACHE_LIMIT", "12M", why, 200), MEMRT_OK);
    ck_assert_int_eq(api->option_set("hugepages", "off", why, 200), MEMRT_OK);
    ck_assert_uint_eq(memrt__options.cache_limit, (size_t)12 << 20);
    ck_assert_uint_eq(memrt__options.huge_pages, MEMRT__HUGE_OFF);
    for (size_t i = 0; api->option(i, &row); i++) {
        ck_assert(strcmp(row.name, "MEMRT_HUGEPAGES") != 0 || strcmp(row.value, "off") == 0);
        ck_assert(strcmp(row.name, "MEMRT_CACHE_LIMIT") != 0 || strcmp(row.value, "12582912") == 0);
    }
    ck_assert_int_eq(api->option_set("hugepages", "advise", NULL, 0), MEMRT_OK);
    ck_assert_int_eq(api->option_set("MEMRT_CACHE_LIMIT", "little", why, 200), MEMRT_EINVAL);
    ck_assert_uint_eq(memrt__options.cache_limit, (size_t)12 << 20);
    ck_assert_ptr_nonnull(strstr(why, "MEMRT_CACHE_LIMIT must be a number of bytes"));
    ck_assert_int_eq(api->option_set("hugepages", "large", NULL, 0), MEMRT_OK);
}

static void keep_every_lock_busy(size_t index)
{
    memrt_policy_t *policy;
    memrt_meminfo_t *mi = api->allocate(100), *found;
    REQUIRE(mi != NULL && api->set_name(mi, "busy") == MEMRT_OK);
    REQUIRE(api->find(api->get_data(mi), &found) == MEMRT_OK);
    api->release(found);
    api->release(mi);
    if (index % 2 == 0) {
        REQUIRE(api->policy_new(NULL, &policy) == MEMRT_OK);
        api->policy_release(policy);
    } else {
        REQUIRE(api->option_set("MEMRT_CACHE_LIMIT", "none", NULL, 0) == MEMRT_OK);
    }
}

static void fork_or_work(size_t index, void *context)
{
    forking_t *forking = context;
    if (index < FORKERS) {
        while (memrt__load_relaxed(&forking->working) < WORKERS) {
        }
        for (int i = 0; i < FORKS; i++) {
            fork_and_wait(forking);
        }
        memrt__store_release(&forking->stop, 1);
        return;
    }
    memrt__fetch_add_relaxed(&forking->working, 1);
    while (memrt__load_acquire(&forking->stop) == 0) {
        keep_every_lock_busy(index);
    }
}

/* Index 0 runs with tracking off, index 1 with tracking on. AddressSanitizer's allocator leaves its
 * own locks held in a child that was forked while other threads were inside the allocator. The test
 * would hang there. */
#define WAYS (SUITE_ADDRESS_SANITIZER ? 0 : 2)

TEST_EACH(child_forked_during_allocations_leaves_parent_intact, WAYS)
{
    forking_t forking = {0};
    int was = api->tracking(index);
    for (int i = 0; i < 8; i++) {
        forking.inherited[i] = api->block_alloc(NULL, 5000);
        pattern_write(forking.inherited[i], 5000, (unsigned)i);
    }
    forking.named = api->allocate(10);
    uint64_t live = stats_of(NULL).live;
    crew_run(FORKERS + WORKERS, fork_or_work, &forking);
    ck_assert_uint_eq(stats_of(NULL).live, live);
    for (int i = 0; i < 8; i++) {
        ck_assert(pattern_holds(forking.inherited[i], 5000, (unsigned)i));
        api->block_free(NULL, forking.inherited[i], 0);
    }
    api->release(forking.named);
    api->tracking(was);
}

static void start_threads(void *context)
{
    (void)context;
    uint64_t made = stats_of(NULL).alloc;
    for (int round = 0; round < 3; round++) {
        crew_run(3, start_runtime, NULL);
        api->block_free(NULL, api->block_alloc(NULL, 10), 0);
    }
    REQUIRE(stats_of(NULL).alloc == made + 3);
}

TEST(forked_child_can_start_threads)
{
    if (!SUITE_THREAD_SANITIZER) { /* does not follow threads into a child */
        child_expect_success(start_threads, NULL);
    }
}
