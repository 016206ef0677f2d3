#include "support/suite.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/alloc/allocator.h"
#include "runtime/alloc/heap/large_cache.h"
#include "runtime/alloc/heap/pages/page_heap.h"
#include "runtime/alloc/heap/purger.h"
#include "runtime/alloc/heap/thread_cache.h"
#include "runtime/config/options.h"
#include "runtime/os/lock.h"
#include "support/child.h"
#include "support/crew.h"
#include "support/kernel.h"

#define LARGE ((size_t)3 << 20)
#define SMALL ((size_t)200 << 10)

/* Wait for a condition. The timeout of the test ends a wait without success. */
static void wait_until(bool (*holds)(void))
{
    while (!holds()) {
        sched_yield();
    }
}

static bool is_running(void)
{
    return memrt__load_relaxed(&memrt__purger_runs) != 0;
}

static bool is_resting(void)
{
    return !is_running();
}

static bool is_cache_empty(void)
{
    return memrt__large_cache_cached(&memrt__large_cache_shared) == 0 &&
           memrt__page_heap_cached() == 0;
}

static void use_and_free(size_t size)
{
    void *block = memrt__allocator_alloc(&memrt__heap_allocator, size, 64, false);
    REQUIRE(block != NULL);
    memset(block, 0xEE, size);
    memrt__allocator_free(&memrt__heap_allocator, block, size, 64);
}

static void use_and_give_mapping(memrt__large_cache_t *cache)
{
    size_t bytes;
    REQUIRE(memrt__large_cache_bytes(LARGE, &bytes));
    void *mapping = memrt__large_cache_take(cache, bytes, 64, false);
    REQUIRE(mapping != NULL);
    memrt__large_cache_give(cache, mapping, bytes);
    memrt__purger_wake();
}

static void empty_caches(size_t decay)
{
    suite_set_decay(decay);
    memrt__allocator_release_unused(&memrt__heap_allocator);
}

#define LONG 3600000 /* no purge happens in a test */

TEST(purger_releases_idle_memory_and_then_ends)
{
    empty_caches(20);
    use_and_free(LARGE);
    use_and_free(SMALL);
    ck_assert(is_running());
    memrt__thread_cache_drain(memrt__thread_self());
    wait_until(is_cache_empty);
    wait_until(is_resting);
}

TEST(purger_ends_when_the_system_refuses_unmap_and_discard)
{
    empty_caches(10);
    kernel_refuse(KERNEL_UNMAP, 0, SIZE_MAX);
    kernel_refuse(KERNEL_DISCARD, 0, SIZE_MAX);
    use_and_free(LARGE);
    use_and_free(SMALL);
    memrt__thread_cache_drain(memrt__thread_self());
    ck_assert(is_running());
    wait_until(is_resting);
    ck_assert(!is_cache_empty());
    kernel_obey();
    memrt__allocator_release_unused(&memrt__heap_allocator);
    ck_assert(is_cache_empty());
}

TEST(purger_starts_again_after_idle_exit)
{
    empty_caches(10);
    for (int round = 0; round < 3; round++) {
        use_and_free(LARGE);
        ck_assert(is_running());
        wait_until(is_cache_empty);
        wait_until(is_resting);
    }
}

TEST(purger_releases_memory_of_small_blocks_alone)
{
    empty_caches(10);
    use_and_free(SMALL);
    memrt__thread_cache_drain(memrt__thread_self());
    wait_until(is_cache_empty);
}

static uint64_t read_processor_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* With the realtime clock, the condition variable would treat every deadline as long past. */
TEST(purger_sleeps_while_nothing_is_due)
{
    empty_caches(LONG);
    use_and_free(LARGE);
    ck_assert(is_running());
    uint64_t used = read_processor_ns();
    usleep(200000);
    ck_assert_uint_lt(read_processor_ns() - used, 20000000);
}

TEST(stopped_purger_starts_again_at_the_next_free)
{
    empty_caches(LONG);
    for (int round = 0; round < 20; round++) {
        use_and_free(LARGE);
        ck_assert(is_running());
        memrt__purger_stop();
        ck_assert(is_resting());
        memrt__purger_stop();
    }
    ck_assert_uint_gt(memrt__large_cache_cached(&memrt__large_cache_shared), 0);
}

TEST(decay_never_starts_no_purger)
{
    empty_caches(MEMRT__DECAY_NEVER);
    size_t threads = kernel_calls(KERNEL_THREAD);
    use_and_free(LARGE);
    ck_assert(is_resting());
    ck_assert_uint_eq(kernel_calls(KERNEL_THREAD), threads);
    ck_assert_uint_gt(memrt__large_cache_cached(&memrt__large_cache_shared), 0);
}

TEST(refused_purger_start_is_retried_and_keeps_the_cache)
{
    empty_caches(10);
    kernel_refuse(KERNEL_THREAD, 0, 2);
    use_and_free(LARGE);
    ck_assert(is_resting());
    size_t cached = memrt__large_cache_cached(&memrt__large_cache_shared);
    ck_assert_uint_gt(cached, 0);
    use_and_free(LARGE);
    ck_assert(is_resting());
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared), cached);
    use_and_free(LARGE); /* does not start a purger, after two refusals */
    use_and_free(LARGE);
    ck_assert(is_running());
    wait_until(is_cache_empty);
}

TEST(refused_purger_starts_are_retried_rarely)
{
    enum { FREES = 2000, ATTEMPTS = 10 + FREES / 512 };
    empty_caches(10);
    kernel_refuse(KERNEL_THREAD, 0, SIZE_MAX);
    size_t attempts = kernel_calls(KERNEL_THREAD);
    for (int i = 0; i < FREES; i++) {
        use_and_give_mapping(&memrt__large_cache_shared);
    }
    ck_assert(is_resting());
    ck_assert_uint_gt(kernel_calls(KERNEL_THREAD), attempts);
    ck_assert_uint_le(kernel_calls(KERNEL_THREAD) - attempts, ATTEMPTS);
    kernel_obey();
    for (int i = 0; i < FREES && is_resting(); i++) {
        use_and_give_mapping(&memrt__large_cache_shared);
    }
    ck_assert(is_running());
}

/// Create a large-object cache with a decay time of its own, as for a policy.
static memrt__large_cache_t *create_large_cache(size_t decay)
{
    memrt__limits_t limits = {MEMRT__INHERIT, MEMRT__INHERIT, decay, MEMRT__INHERIT};
    memrt__large_cache_t *cache = memrt__large_cache_new(&limits);
    ck_assert_ptr_nonnull(cache);
    memrt__purger_hurry();
    return cache;
}

static memrt__large_cache_t *watched;

static bool is_watched_cache_empty(void)
{
    return memrt__large_cache_cached(watched) == 0;
}

TEST(policy_decay_applies_while_process_decay_is_never)
{
    empty_caches(MEMRT__DECAY_NEVER);
    watched = create_large_cache(10);
    use_and_free(LARGE);
    ck_assert(is_resting());
    size_t cached = memrt__large_cache_cached(&memrt__large_cache_shared);
    use_and_give_mapping(watched);
    ck_assert(is_running());
    wait_until(is_watched_cache_empty);
    wait_until(is_resting);
    ck_assert_uint_eq(memrt__large_cache_cached(&memrt__large_cache_shared), cached);
    memrt__large_cache_delete(watched);
}

TEST(shorter_decay_wakes_the_sleeping_purger)
{
    empty_caches(LONG);
    use_and_free(LARGE);
    wait_until(kernel_sleeps_long);
    watched = create_large_cache(10);
    use_and_give_mapping(watched);
    wait_until(is_watched_cache_empty);
    ck_assert_uint_gt(memrt__large_cache_cached(&memrt__large_cache_shared), 0);
    memrt__large_cache_delete(watched);
    wait_until(kernel_sleeps_long);
    ck_assert_int_eq(api->option_set("MEMRT_DECAY", "10", NULL, 0), MEMRT_OK);
    wait_until(is_cache_empty);
}

TEST(pages_follow_process_decay_despite_shorter_policy_decay)
{
    empty_caches(LONG);
    use_and_free(SMALL);
    memrt__thread_cache_drain(memrt__thread_self());
    size_t pages = memrt__page_heap_cached();
    ck_assert_uint_gt(pages, 0);
    watched = create_large_cache(10);
    for (int round = 0; round < 4; round++) {
        use_and_give_mapping(watched);
        wait_until(is_watched_cache_empty);
    }
    ck_assert_uint_eq(memrt__page_heap_cached(), pages);
    memrt__large_cache_delete(watched);
}

TEST(decay_set_later_applies_to_memory_already_cached)
{
    empty_caches(MEMRT__DECAY_NEVER);
    use_and_free(LARGE);
    use_and_free(SMALL);
    memrt__thread_cache_drain(memrt__thread_self());
    ck_assert(is_resting());
    ck_assert_int_eq(api->option_set("MEMRT_DECAY", "10", NULL, 0), MEMRT_OK);
    ck_assert(is_running());
    wait_until(is_cache_empty);
}

TEST(purger_ends_when_decay_becomes_never)
{
    empty_caches(LONG);
    use_and_free(LARGE);
    ck_assert(is_running());
    ck_assert_int_eq(api->option_set("MEMRT_DECAY", "never", NULL, 0), MEMRT_OK);
    wait_until(is_resting);
    ck_assert_uint_gt(memrt__large_cache_cached(&memrt__large_cache_shared), 0);
}

static void count_threads(void *context)
{
    size_t *threads = context;
    char line[256];
    FILE *file = fopen("/proc/self/status", "r");
    REQUIRE(file != NULL);
    while (fgets(line, sizeof(line), file) != NULL) {
        sscanf(line, "Threads: %zu", threads);
    }
    fclose(file);
}

static void keep_and_purge(void *context)
{
    (void)context;
    REQUIRE(is_resting());
    memrt__options.decay = 10;
    use_and_free(LARGE);
    wait_until(is_cache_empty); /* only the child's own purger can empty the caches */
    wait_until(is_resting);
}

TEST(forked_child_has_no_purger_and_can_start_a_new_purger)
{
    if (!SUITE_THREAD_SANITIZER) { /* does not follow threads into a child */
        empty_caches(LONG);
        use_and_free(LARGE);
        child_expect_success(keep_and_purge, NULL);
    }
}

TEST(purger_stop_ends_its_thread_until_the_next_free)
{
    empty_caches(LONG);
    use_and_free(LARGE);
    size_t before = 0, after = 0;
    count_threads(&before);
    memrt__purger_stop();
    count_threads(&after);
    ck_assert_uint_eq(after, before - 1);
    use_and_free(LARGE);
    ck_assert(is_running());
}

/// Fork while other threads free large blocks, so that a purger may start between the stop and the
/// fork.
static void fork_while_others_free(size_t index, void *context)
{
    size_t *done = context;
    while (index != 0 && memrt__load_acquire(done) == 0) {
        use_and_free(LARGE);
    }
    for (int i = 0; index == 0 && i < 40; i++) {
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            child_start_watchdog();
            memrt__allocator_release_unused(&memrt__heap_allocator);
            keep_and_purge(NULL);
            _exit(0);
        }
        REQUIRE(child_wait(child) == 0);
    }
    memrt__store_release(done, 1);
}

/* AddressSanitizer's allocator leaves its own locks held in such a child. */
TEST(child_forked_during_frees_purges_its_caches)
{
    if (!SUITE_THREAD_SANITIZER && !SUITE_ADDRESS_SANITIZER) {
        size_t done = 0;
        empty_caches(LONG);
        crew_run(3, fork_while_others_free, &done);
    }
}

/// Run `act` in a child made without fork handlers.
static void run_in_clone(void (*act)(void))
{
    fflush(NULL);
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        child_start_watchdog();
        act();
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", status);
}

/// Run the library's destructor by exit(). Sanitizers are excluded, because their exit code needs
/// threads that the child does not have.
static void stop_and_exit(void)
{
    memrt__purger_stop();
    if (!SUITE_THREAD_SANITIZER && !SUITE_ADDRESS_SANITIZER) {
        exit(0);
    }
}

TEST(cloned_child_exits_without_waiting_for_the_purger)
{
    empty_caches(LONG);
    use_and_free(LARGE);
    ck_assert(is_running());
    run_in_clone(stop_and_exit);
    ck_assert(is_running());
}

/// Reset the locks and the purger as the fork handler does in a child. Here a purger was running at
/// the fork.
static void reset_and_purge(void)
{
    REQUIRE(is_running());
    memrt__lock_renew_all();
    memrt__purger_forked();
    keep_and_purge(NULL);
}

TEST(cloned_child_forgets_the_purger_of_its_parent)
{
    if (!SUITE_THREAD_SANITIZER && !SUITE_ADDRESS_SANITIZER) {
        empty_caches(LONG);
        use_and_free(LARGE);
        ck_assert(is_running());
        memrt__lock_all(); /* as the fork handler does before a fork */
        run_in_clone(reset_and_purge);
        memrt__unlock_all();
    }
}

static void start_and_stop(size_t index, void *context)
{
    (void)context;
    for (int round = 0; round < 300; round++) {
        if (index == 0) {
            memrt__purger_stop();
        } else {
            use_and_free(round % 3 == 0 ? SMALL : LARGE);
        }
    }
}

TEST_EACH(concurrent_purger_starts_stops_and_purges_end_at_rest, 2)
{
    empty_caches(index == 0 ? 0 : LONG);
    crew_run(4, start_and_stop, NULL);
    memrt__purger_stop();
    ck_assert(is_resting());
}

TEST(purge_all_empties_the_caches)
{
    empty_caches(LONG);
    use_and_free(LARGE);
    use_and_free(SMALL);
    memrt__thread_cache_drain(memrt__thread_self());
    size_t cached =
        memrt__large_cache_cached(&memrt__large_cache_shared) + memrt__page_heap_cached();
    ck_assert_uint_gt(memrt__page_heap_cached(), 0);
    ck_assert_uint_ge(memrt__purge_all(), cached);
    ck_assert(is_cache_empty());
}
