#include "support/suite.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

#include "runtime/base/atomics.h"
#include "runtime/base/unwind.h"
#include "support/child.h"
#include "support/crew.h"

#define MOST 32

/// The calls from here on, which are in the caller's object.
__attribute__((noinline)) static size_t unwind_here(void **frames, size_t max)
{
    int count = memrt__unwind(frames, (int)max);
    __asm__ volatile("" ::: "memory"); /* not a tail call */
    ck_assert_int_ge(count, 0);
    return (size_t)count;
}

TEST(calls_are_found_from_the_innermost_on_up_to_the_number_asked_for)
{
    void *all[MOST], *some[3];
    size_t count = unwind_here(all, MOST);
    if (count == 0) {
        return; /* neither libunwind nor the C library unwinds here */
    }
    ck_assert_uint_gt(count, 3);
    ck_assert_uint_eq(unwind_here(some, 3), 3);
    ck_assert_uint_eq(unwind_here(some, 0), 0);
    uintptr_t into = (uintptr_t)all[0] - (uintptr_t)unwind_here;
    ck_assert_msg(into < 4096 || (uintptr_t)all[1] - (uintptr_t)unwind_here < 4096,
                  "%p is not in the function at %p", all[0], (void *)(uintptr_t)unwind_here);
}

TEST(calls_of_the_library_itself_are_counted_as_long_as_they_come_first)
{
    void *here = (void *)(uintptr_t)memrt__unwind, *libc = (void *)(uintptr_t)puts;
    void *frames[] = {here, here, libc, here};
    ck_assert_uint_eq(memrt__unwind_own(frames, 4), 2);
    ck_assert_uint_eq(memrt__unwind_own(frames, 1), 1);
    ck_assert_uint_eq(memrt__unwind_own(frames + 2, 2), 0);
    ck_assert_uint_eq(memrt__unwind_own(frames, 0), 0);
}

TEST(libunwind_is_taken_where_it_is_installed)
{
    void *library = dlopen("libunwind.so.8", RTLD_LAZY);
    ck_assert_int_eq(memrt__unwind_is_fast(), library != NULL);
}

/* libunwind 1.6.2 looks up what it knows of a call under a lock of its own, but for calls that the
   thread has gone before. */
static void *unwind_once(void *nothing)
{
    void *frames[MOST];
    REQUIRE(memrt__unwind(frames, MOST) >= 0); /* Check has a lock of its own */
    return nothing;
}

static void unwind_on_a_new_thread(void)
{
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, unwind_once, NULL) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
}

#define UNWINDERS 4

/* ThreadSanitizer follows no threads of children, and AddressSanitizer leaves them locks held. */
#define CHILDREN (SUITE_THREAD_SANITIZER || SUITE_ADDRESS_SANITIZER ? 0 : 400)

static void fork_among_threads_that_unwind(size_t index, void *stop)
{
    while (index < UNWINDERS && memrt__load_acquire(stop) == 0) {
        unwind_on_a_new_thread();
    }
    for (int i = 0; index == UNWINDERS && i < CHILDREN; i++) {
        pid_t child = fork();
        if (child == 0) {
            child_start_watchdog();
            unwind_on_a_new_thread();
            _exit(0);
        }
        REQUIRE(child_wait(child) == 0);
    }
    memrt__store_release(stop, 1);
}

TEST(a_child_finds_the_unwinder_free_whatever_threads_of_its_parent_were_doing)
{
    size_t stop = 0;
    crew_run(UNWINDERS + 1, fork_among_threads_that_unwind, &stop);
}

static volatile sig_atomic_t forks;

static void fork_in_a_handler(int number)
{
    (void)number;
    forks++;
    pid_t child = fork();
    if (child == 0) {
        return; /* to whatever was interrupted */
    }
    REQUIRE(child_wait(child) == 0);
}

/// Most signals come while it is inside of the unwinder.
static void unwind_until_forked(void)
{
    void *frames[MOST];
    pid_t self = getpid();
    while (forks < 20 && getpid() == self) {
        (void)memrt__unwind(frames, MOST);
    }
    if (getpid() != self) {
        child_start_watchdog();
        REQUIRE(memrt__unwind(frames, MOST) >= 0); /* the child can go on to unwind */
        pid_t grandchild = fork();
        REQUIRE(grandchild >= 0);
        _exit(0);
    }
}

TEST(a_signals_handler_may_fork_while_its_thread_is_in_the_unwinder)
{
    if (CHILDREN == 0) {
        return;
    }
    struct sigaction action = {.sa_handler = fork_in_a_handler}, before;
    ck_assert_int_eq(sigaction(SIGPROF, &action, &before), 0);
    struct itimerval soon = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    ck_assert_int_eq(setitimer(ITIMER_PROF, &soon, NULL), 0);
    unwind_until_forked();
    ck_assert_int_eq(setitimer(ITIMER_PROF, &never, NULL), 0);
    ck_assert_int_eq(sigaction(SIGPROF, &before, NULL), 0);
}
