#include "support/suite.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "runtime/base/atomics.h"
#include "runtime/os/lock.h"
#include "runtime/os/unwind.h"
#include "support/child.h"
#include "support/crew.h"

#define MOST 32

/// Return the frames from this function on. Its caller's frame is in the same object file.
__attribute__((noinline)) static size_t unwind_here(void **frames, size_t max)
{
    int count = memrt__unwind(frames, (int)max);
    __asm__ volatile("" ::: "memory"); /* not a tail call */
    ck_assert_int_ge(count, 0);
    return (size_t)count;
}

/* Three keys of threads, deleted but for the middle one before memrt creates keys. The C library
 * gives out the lowest free number: memrt's first key gets the first number, the key of libunwind
 * the third number, memrt's last key a higher number. */
static pthread_key_t middle_key, cache_key;

typedef struct ending {
    size_t rounds;            ///< rounds of destructors that began
    size_t caches;            ///< rounds in which the destructor of libunwind follows
    size_t is_ready, may_end; ///< release stores before the first round
    size_t is_last, is_over;  ///< release stores in the last round
    int frames;               ///< frames found right before the thread ended
} ending_t;

static void wait_for(const size_t *flag)
{
    while (memrt__load_acquire(flag) == 0) {
        sched_yield();
    }
}

/// Destructor between memrt's first key and the key of libunwind.
static void count_round(void *argument)
{
    ending_t *ending = argument;
    ending->caches += pthread_getspecific(cache_key) != NULL;
    if (++ending->rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
        REQUIRE(pthread_setspecific(middle_key, ending) == 0);
        return;
    }
    memrt__store_release(&ending->is_last, 1);
    usleep(50000); /* time for a wrong pause */
    memrt__store_release(&ending->is_over, 1);
}

static void *unwind_and_end(void *argument)
{
    ending_t *ending = argument;
    void *frames[MOST];
    REQUIRE(memrt__unwind_by_library(frames, MOST) > 0);
    REQUIRE(pthread_getspecific(cache_key) != NULL);
    REQUIRE(pthread_setspecific(middle_key, ending) == 0);
    memrt__store_release(&ending->is_ready, 1);
    wait_for(&ending->may_end);
    ending->frames = memrt__unwind_by_library(frames, MOST);
    return NULL;
}

/// Create the keys around the middle key. Must come before the first call of memrt's unwinder.
static bool create_keys(void)
{
    pthread_key_t first;
    ck_assert_int_eq(pthread_key_create(&first, NULL), 0);
    ck_assert_int_eq(pthread_key_create(&middle_key, count_round), 0);
    ck_assert_int_eq(pthread_key_create(&cache_key, NULL), 0);
    ck_assert(first < middle_key && middle_key < cache_key);
    pthread_key_delete(first);
    pthread_key_delete(cache_key);
    return memrt__unwind_is_fast();
}

TEST(ending_thread_holds_off_a_fork_or_keeps_its_cache)
{
    if (SUITE_THREAD_SANITIZER || !create_keys()) {
        return; /* ThreadSanitizer leaves threads in the last round; no libunwind */
    }
    ending_t ending = {.may_end = 1};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, unwind_and_end, &ending), 0);
    wait_for(&ending.is_last);
    memrt__unwind_pause(); /* as at a fork */
    ck_assert_uint_eq(memrt__load_acquire(&ending.is_over), 1);
    memrt__unwind_resume();
    pthread_join(thread, NULL);
    ck_assert_uint_eq(ending.caches, PTHREAD_DESTRUCTOR_ITERATIONS);
    ck_assert_int_gt(ending.frames, 0);

    ending = (ending_t){0};
    ck_assert_int_eq(pthread_create(&thread, NULL, unwind_and_end, &ending), 0);
    wait_for(&ending.is_ready);
    memrt__lock_all(); /* as at a fork that takes long */
    memrt__unwind_pause();
    memrt__store_release(&ending.may_end, 1);
    pthread_join(thread, NULL);
    memrt__unwind_resume();
    memrt__unlock_all();
    ck_assert_uint_eq(ending.rounds, PTHREAD_DESTRUCTOR_ITERATIONS);
    ck_assert_uint_eq(ending.caches, 0);
    ck_assert_int_eq(ending.frames, 0);
}

TEST(unwind_returns_innermost_frames_up_to_the_limit)
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

TEST(unwind_own_counts_leading_frames_of_memrt)
{
    int local; /* the stack lies outside of all code */
    void *here = (void *)(uintptr_t)memrt__unwind;
    void *frames[] = {here, here, &local, here};
    ck_assert_uint_eq(memrt__unwind_own(frames, 4), 2);
    ck_assert_uint_eq(memrt__unwind_own(frames, 1), 1);
    ck_assert_uint_eq(memrt__unwind_own(frames + 2, 2), 0);
    ck_assert_uint_eq(memrt__unwind_own(frames, 0), 0);
}

TEST(libunwind_is_used_where_installed)
{
    void *library = dlopen("libunwind.so.8", RTLD_LAZY);
    ck_assert_int_eq(memrt__unwind_is_fast(), library != NULL);
}

/* libunwind 1.6.2 looks up the unwind information of a frame under a lock of its own. Only frames
 * in the thread's cache need no lock. */
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

/* ThreadSanitizer does not follow threads of children. AddressSanitizer leaves locks held in
 * them. */
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

TEST(child_can_unwind_when_forked_while_threads_unwind)
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
        return; /* to the interrupted code */
    }
    REQUIRE(child_wait(child) == 0);
}

/// Unwind until the signal handler has forked 20 times. Most signals arrive inside of the unwinder.
static void unwind_until_forked(void)
{
    void *frames[MOST];
    pid_t self = getpid();
    while (forks < 20 && getpid() == self) {
        (void)memrt__unwind(frames, MOST);
    }
    if (getpid() != self) {
        child_start_watchdog();
        REQUIRE(memrt__unwind(frames, MOST) >= 0); /* the child can still unwind */
        pid_t grandchild = fork();
        REQUIRE(grandchild >= 0);
        _exit(0);
    }
}

TEST(signal_handler_can_fork_inside_the_unwinder)
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
