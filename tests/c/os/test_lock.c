#include "support/suite.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/atomics.h"
#include "runtime/os/lock.h"
#include "support/child.h"
#include "support/crew.h"

#define ROUNDS 5000

static void add_under_lock(size_t index, void *context)
{
    (void)index;
    size_t *plain = context;
    for (int i = 0; i < ROUNDS; i++) {
        memrt__lock(MEMRT__RANK_FAULT);
        ++*plain;
        memrt__unlock(MEMRT__RANK_FAULT);
    }
}

TEST(lock_admits_single_thread_at_a_time)
{
    size_t plain = 0;
    crew_run(4, add_under_lock, &plain);
    ck_assert_uint_eq(plain, 4 * ROUNDS);
}

static void add_under_all_locks(size_t index, void *context)
{
    (void)index;
    size_t *plain = context;
    for (int i = 0; i < ROUNDS / 5; i++) {
        memrt__lock_all();
        ++*plain;
        memrt__unlock_all();
    }
}

TEST(lock_all_excludes_other_threads_without_deadlock)
{
    size_t plain = 0;
    crew_run(4, add_under_all_locks, &plain);
    ck_assert_uint_eq(plain, 4 * (ROUNDS / 5));
}

/// A thread that holds a lock when the test forks.
typedef struct holder {
    memrt__rank_t rank;
    pthread_barrier_t turn;
    size_t changes; ///< under the lock; even, except while the thread holds the lock
} holder_t;

/// Hold the lock for 0.1 s after the first turn. A fork that does not wait sees an odd number.
static void *hold_lock(void *context)
{
    holder_t *holder = context;
    memrt__lock(holder->rank);
    holder->changes++;
    pthread_barrier_wait(&holder->turn);
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    holder->changes++;
    memrt__unlock(holder->rank);
    return NULL;
}

/// Fork while another thread holds a lock. The child takes the lock, and exits with the number of
/// changes that the child sees.
static int fork_while_held(memrt__rank_t rank)
{
    holder_t holder = {.rank = rank};
    pthread_t thread;
    ck_assert_int_eq(pthread_barrier_init(&holder.turn, NULL, 2), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, hold_lock, &holder), 0);
    pthread_barrier_wait(&holder.turn);
    pid_t child = fork();
    if (child == 0) {
        child_start_watchdog();
        memrt__lock(rank);
        _exit((int)holder.changes);
    }
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&holder.turn);
    return child_wait(child);
}

TEST(fork_waits_for_lock_held_by_another_thread)
{
    ck_assert_int_eq(fork_while_held(MEMRT__RANK_OPTIONS), 2);
    ck_assert_int_eq(fork_while_held(MEMRT__RANK_UNWIND), 2);
}

TEST(child_takes_lock_that_fork_does_not_wait_for)
{
    ck_assert_int_eq(fork_while_held(MEMRT__RANK_NAMED_REFS), 1);
}

static void hold_renewed_locks(void *context)
{
    (void)context;
    memrt__lock_all();
    memrt__lock_renew_all();
    memrt__lock_all();
    memrt__unlock_all();
}

TEST(renewed_locks_can_be_taken_in_fork_child)
{
    child_expect_success(hold_renewed_locks, NULL);
}

/// A thread that holds a lock and passes the lock, and a thread that waits for the lock.
typedef struct passing {
    size_t waits; ///< 1: the waiting thread is about to take the lock
    size_t taken; ///< 1: the waiting thread had the lock
    bool (*take)(memrt__rank_t rank);
} passing_t;

static void *take_while_waiting(void *context)
{
    passing_t *passing = context;
    memrt__store_release(&passing->waits, 1);
    REQUIRE(passing->take(MEMRT__RANK_FAULT));
    memrt__store_release(&passing->taken, 1);
    memrt__unlock(MEMRT__RANK_FAULT);
    return NULL;
}

static bool take_lock(memrt__rank_t rank)
{
    memrt__lock(rank);
    return true;
}

static bool take_lock_unless_forking(memrt__rank_t rank)
{
    return memrt__lock_or_fork(rank);
}

/// Pass a lock until the waiting thread had the lock. A step without the lock fails the test by its
/// timeout.
static void pass_to_waiting_thread(bool (*take)(memrt__rank_t rank))
{
    passing_t passing = {.take = take};
    pthread_t thread;
    memrt__lock(MEMRT__RANK_FAULT);
    memrt__lock_begin_steps(MEMRT__RANK_FAULT);
    ck_assert_int_eq(pthread_create(&thread, NULL, take_while_waiting, &passing), 0);
    while (memrt__load_acquire(&passing.taken) == 0) {
        ck_assert(memrt__lock_pass(MEMRT__RANK_FAULT));
    }
    memrt__lock_end_steps(MEMRT__RANK_FAULT);
    memrt__unlock(MEMRT__RANK_FAULT);
    pthread_join(thread, NULL);
}

TEST(lock_pass_lets_waiting_threads_take_the_lock)
{
    pass_to_waiting_thread(take_lock);
    pass_to_waiting_thread(take_lock_unless_forking);
}

TEST(lock_pass_without_waiting_thread_keeps_the_lock)
{
    memrt__lock(MEMRT__RANK_FAULT);
    ck_assert(memrt__lock_pass(MEMRT__RANK_FAULT));
    memrt__unlock(MEMRT__RANK_FAULT);
    memrt__lock_all();
    ck_assert(memrt__lock_pass(MEMRT__RANK_FAULT));
    memrt__unlock_all();
}

#if MEMRT_DEBUG

static void take_earlier_rank(void *context)
{
    (void)context;
    memrt__lock(MEMRT__RANK_TRACE);
    memrt__lock(MEMRT__RANK_THREADS);
}

static void take_lock_twice(void *context)
{
    (void)context;
    memrt__lock(MEMRT__RANK_TRACE);
    if (memrt__lock_or_fork(MEMRT__RANK_TRACE)) {
        memrt__unlock(MEMRT__RANK_TRACE);
    }
}

static void release_free_lock(void *context)
{
    (void)context;
    memrt__unlock(MEMRT__RANK_TRACE);
}

TEST(lock_out_of_order_aborts)
{
    child_expect_abort(take_earlier_rank, NULL, "broken invariant: is_in_order(rank)");
    child_expect_abort(take_lock_twice, NULL, "is_in_order(rank)");
    child_expect_abort(release_free_lock, NULL, "broken invariant: memrt__lock_is_held(rank)");
}

TEST(thread_knows_the_locks_that_it_holds)
{
    ck_assert(!memrt__lock_is_held(MEMRT__RANK_TRACE));
    memrt__lock(MEMRT__RANK_TRACE);
    ck_assert(memrt__lock_is_held(MEMRT__RANK_TRACE));
    ck_assert(!memrt__lock_is_held(MEMRT__RANK_THREADS));
    memrt__unlock(MEMRT__RANK_TRACE);
    ck_assert(!memrt__lock_is_held(MEMRT__RANK_TRACE));
}

#endif
