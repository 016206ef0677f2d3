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
#include "runtime/alloc/cache.h"
#include "runtime/alloc/pages.h"
#include "runtime/alloc/purger.h"
#include "runtime/alloc/warm.h"
#include "runtime/base/lock.h"
#include "runtime/base/options.h"
#include "support/child.h"
#include "support/crew.h"
#include "support/kernel.h"

#define LARGE ((size_t)3 << 20)
#define SMALL ((size_t)200 << 10)

/* The test's timeout ends what waits in vain. */
static void wait_until(bool (*holds)(void))
{
    while (!holds()) {
        sched_yield();
    }
}

static bool runs(void)
{
    return memrt__load_relaxed(&memrt__purger_runs) != 0;
}

static bool rests(void)
{
    return !runs();
}

static bool nothing_is_cached(void)
{
    return memrt__warm_cached(&memrt__warm_shared) == 0 && memrt__pages_cached() == 0;
}

static void use_and_free(size_t size)
{
    void *block = memrt__allocator_alloc(&memrt__pool_allocator, size, 64, false);
    REQUIRE(block != NULL);
    memset(block, 0xEE, size);
    memrt__allocator_free(&memrt__pool_allocator, block, size, 64);
}

static void begin(size_t decay)
{
    suite_set_decay(decay);
    memrt__allocator_release_unused(&memrt__pool_allocator);
}

#define LONG 3600000 /* no purge comes by */

TEST(what_nobody_uses_goes_back_without_a_call_and_then_the_thread_ends)
{
    begin(20);
    use_and_free(LARGE);
    use_and_free(SMALL);
    ck_assert(runs());
    memrt__cache_drain(memrt__thread_self());
    wait_until(nothing_is_cached);
    wait_until(rests);
}

TEST(the_thread_starts_again_after_it_ended_by_itself)
{
    begin(10);
    for (int round = 0; round < 3; round++) {
        use_and_free(LARGE);
        ck_assert(runs());
        wait_until(nothing_is_cached);
        wait_until(rests);
    }
}

TEST(small_blocks_go_back_too_where_no_large_one_was_ever_kept)
{
    begin(10);
    use_and_free(SMALL);
    memrt__cache_drain(memrt__thread_self());
    wait_until(nothing_is_cached);
}

static uint64_t processor_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* A condition of the clock of the calendar takes every deadline for long past. */
TEST(the_thread_sleeps_while_nothing_is_due)
{
    begin(LONG);
    use_and_free(LARGE);
    ck_assert(runs());
    uint64_t used = processor_ns();
    usleep(200000);
    ck_assert_uint_lt(processor_ns() - used, 20000000);
}

TEST(a_stop_ends_the_thread_and_the_next_free_starts_it)
{
    begin(LONG);
    for (int round = 0; round < 20; round++) {
        use_and_free(LARGE);
        ck_assert(runs());
        memrt__purger_stop();
        ck_assert(rests());
        memrt__purger_stop();
    }
    ck_assert_uint_gt(memrt__warm_cached(&memrt__warm_shared), 0);
}

TEST(nothing_is_started_where_memory_is_kept_for_ever)
{
    begin(MEMRT__DECAY_NEVER);
    size_t threads = kernel_calls(KERNEL_THREAD);
    use_and_free(LARGE);
    ck_assert(rests());
    ck_assert_uint_eq(kernel_calls(KERNEL_THREAD), threads);
    ck_assert_uint_gt(memrt__warm_cached(&memrt__warm_shared), 0);
}

TEST(a_thread_that_could_not_be_started_is_tried_again_and_nothing_is_lost)
{
    begin(10);
    kernel_refuse(KERNEL_THREAD, 0, 2);
    use_and_free(LARGE);
    ck_assert(rests());
    size_t cached = memrt__warm_cached(&memrt__warm_shared);
    ck_assert_uint_gt(cached, 0);
    use_and_free(LARGE);
    ck_assert(rests());
    ck_assert_uint_eq(memrt__warm_cached(&memrt__warm_shared), cached);
    use_and_free(LARGE);
    ck_assert(runs());
    wait_until(nothing_is_cached);
}

/// A policy's worth of mappings kept with a decay of their own.
static memrt__warm_t *warm_with(size_t decay)
{
    memrt__limits_t limits = {MEMRT__INHERIT, MEMRT__INHERIT, decay};
    memrt__warm_t *warm = memrt__warm_new(&limits);
    ck_assert_ptr_nonnull(warm);
    memrt__purger_hurry();
    return warm;
}

static void use_and_give(memrt__warm_t *warm)
{
    size_t bytes;
    REQUIRE(memrt__warm_bytes(LARGE, &bytes));
    void *mapping = memrt__warm_take(warm, bytes, 64, false);
    REQUIRE(mapping != NULL);
    memrt__warm_give(warm, mapping, bytes);
    memrt__purger_wake();
}

static memrt__warm_t *watched;

static bool nothing_watched_is_cached(void)
{
    return memrt__warm_cached(watched) == 0;
}

TEST(a_policys_decay_is_kept_where_the_process_keeps_for_ever)
{
    begin(MEMRT__DECAY_NEVER);
    watched = warm_with(10);
    use_and_free(LARGE);
    ck_assert(rests());
    size_t cached = memrt__warm_cached(&memrt__warm_shared);
    use_and_give(watched);
    ck_assert(runs());
    wait_until(nothing_watched_is_cached);
    wait_until(rests);
    ck_assert_uint_eq(memrt__warm_cached(&memrt__warm_shared), cached);
    memrt__warm_delete(watched);
}

TEST(a_shorter_decay_is_not_slept_through)
{
    begin(LONG);
    use_and_free(LARGE);
    wait_until(kernel_sleeps_long);
    watched = warm_with(10);
    use_and_give(watched);
    wait_until(nothing_watched_is_cached);
    ck_assert_uint_gt(memrt__warm_cached(&memrt__warm_shared), 0);
    memrt__warm_delete(watched);
    wait_until(kernel_sleeps_long);
    ck_assert_int_eq(api->option_set("MEMRT_DECAY", "10", NULL, 0), MEMRT_OK);
    wait_until(nothing_is_cached);
}

TEST(pages_stay_as_long_as_the_process_says_though_a_policys_decay_is_shorter)
{
    begin(LONG);
    use_and_free(SMALL);
    memrt__cache_drain(memrt__thread_self());
    size_t pages = memrt__pages_cached();
    ck_assert_uint_gt(pages, 0);
    watched = warm_with(10);
    for (int round = 0; round < 4; round++) {
        use_and_give(watched);
        wait_until(nothing_watched_is_cached);
    }
    ck_assert_uint_eq(memrt__pages_cached(), pages);
    memrt__warm_delete(watched);
}

TEST(a_decay_that_comes_later_is_for_what_was_kept_before)
{
    begin(MEMRT__DECAY_NEVER);
    use_and_free(LARGE);
    use_and_free(SMALL);
    memrt__cache_drain(memrt__thread_self());
    ck_assert(rests());
    ck_assert_int_eq(api->option_set("MEMRT_DECAY", "10", NULL, 0), MEMRT_OK);
    ck_assert(runs());
    wait_until(nothing_is_cached);
}

TEST(the_thread_ends_when_all_is_to_be_kept_for_ever)
{
    begin(LONG);
    use_and_free(LARGE);
    ck_assert(runs());
    ck_assert_int_eq(api->option_set("MEMRT_DECAY", "never", NULL, 0), MEMRT_OK);
    wait_until(rests);
    ck_assert_uint_gt(memrt__warm_cached(&memrt__warm_shared), 0);
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
    REQUIRE(rests());
    memrt__options.decay = 10;
    use_and_free(LARGE);
    wait_until(nothing_is_cached); /* which only a purger of its own brings about */
    wait_until(rests);
}

TEST(a_forked_child_has_no_purger_and_can_start_its_own)
{
    if (!SUITE_THREAD_SANITIZER) { /* which follows no threads into a child */
        begin(LONG);
        use_and_free(LARGE);
        child_expect_success(keep_and_purge, NULL);
    }
}

TEST(the_purger_has_ended_when_a_fork_begins_and_starts_again_in_the_parent)
{
    begin(LONG);
    use_and_free(LARGE);
    size_t before = 0, after = 0;
    count_threads(&before);
    memrt__purger_stop();
    count_threads(&after);
    ck_assert_uint_eq(after, before - 1);
    use_and_free(LARGE);
    ck_assert(runs());
}

/// Free large blocks all the while, so that a purger may start between its stop and the fork.
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
            memrt__allocator_release_unused(&memrt__pool_allocator);
            keep_and_purge(NULL);
            _exit(0);
        }
        REQUIRE(child_wait(child) == 0);
    }
    memrt__store_release(done, 1);
}

/* AddressSanitizer's allocator leaves its own locks held in such a child. */
TEST(a_child_forked_while_others_free_purges_as_its_parent_does)
{
    if (!SUITE_THREAD_SANITIZER && !SUITE_ADDRESS_SANITIZER) {
        size_t done = 0;
        begin(LONG);
        crew_run(3, fork_while_others_free, &done);
    }
}

/// A child that no handler of fork saw.
static void in_clone(void (*act)(void))
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

/// `exit` runs the library's destructor. What sanitizers do at exit needs threads that are not
/// here.
static void leave(void)
{
    memrt__purger_stop();
    if (!SUITE_THREAD_SANITIZER && !SUITE_ADDRESS_SANITIZER) {
        exit(0);
    }
}

TEST(a_child_made_without_the_handlers_of_fork_does_not_wait_for_the_purger_at_its_exit)
{
    begin(LONG);
    use_and_free(LARGE);
    ck_assert(runs());
    in_clone(leave);
    ck_assert(runs());
}

/// What a fork does in a child whose purger was started after the one was stopped.
static void forget_and_purge(void)
{
    REQUIRE(runs());
    memrt__lock_renew_all();
    memrt__purger_forked();
    keep_and_purge(NULL);
}

TEST(a_child_forgets_a_purger_that_ran_when_it_was_made)
{
    if (!SUITE_THREAD_SANITIZER && !SUITE_ADDRESS_SANITIZER) {
        begin(LONG);
        use_and_free(LARGE);
        ck_assert(runs());
        in_clone(forget_and_purge);
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

TEST_EACH(starts_stops_and_purges_may_come_at_once, 2)
{
    begin(index == 0 ? 0 : LONG);
    crew_run(4, start_and_stop, NULL);
    memrt__purger_stop();
    ck_assert(rests());
}

TEST(a_purge_of_all_leaves_nothing)
{
    begin(LONG);
    use_and_free(LARGE);
    use_and_free(SMALL);
    memrt__cache_drain(memrt__thread_self());
    size_t cached = memrt__warm_cached(&memrt__warm_shared) + memrt__pages_cached();
    ck_assert_uint_gt(memrt__pages_cached(), 0);
    ck_assert_uint_ge(memrt__purge_all(), cached);
    ck_assert(nothing_is_cached());
}
