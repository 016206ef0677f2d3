#include "runtime/os/lock.h"

#include <sched.h>
#include <time.h>

#include "runtime/base/atomics.h"
#include "runtime/base/compiler.h"
#include "runtime/base/shield.h"
#include "runtime/os/os.h"

/// A lock in a cache line of its own, to avoid false sharing between neighbouring locks.
typedef struct lock_line {
    _Alignas(MEMRT__CACHE_LINE) pthread_mutex_t mutex;
    size_t steps;   ///< threads that work in steps under the lock; otherwise no waits are counted
    size_t waiting; ///< threads that wait for the lock, as far as counted
    size_t served;  ///< waits that ended with the lock; written under the lock
} lock_line_t;

/// Mutex type: locks are held for less time than a sleep and a wake-up take. An adaptive mutex
/// spins before sleeping, where the C library has adaptive mutexes.
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
#define MUTEX_TYPE PTHREAD_MUTEX_ADAPTIVE_NP
#define MUTEX_INITIALIZER PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
#else
#define MUTEX_TYPE PTHREAD_MUTEX_DEFAULT
#define MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER
#endif

static lock_line_t locks[MEMRT__RANKS] = {
    [0 ... MEMRT__RANKS - 1] = {.mutex = MUTEX_INITIALIZER},
};

/* A fork holds nearly all locks from memrt's prepare handler to memrt's handler in parent or
   child. Handlers of other libraries may run in between, on the forking thread. The forking
   thread owns these locks, so lock and unlock are no-ops for the forking thread. */
static MEMRT__THREAD_LOCAL bool is_forking_thread; ///< this thread forks and holds all locks
static size_t
    fork_start;        ///< memrt__os_now_ns() at the start of the fork; 0: no fork is in progress
static size_t process; ///< relaxed; process id for which `on_child` need not run
static void (*on_child)(void); ///< set once

/// Time that a thread waits for a fork: longer than a fork takes, unless a handler of another
/// library blocks.
#define PATIENCE (20 * MEMRT__MS)

/// Return whether a fork leaves the lock free. A child can repair the data under these locks.
static bool is_free_in_forks(memrt__rank_t rank)
{
    return (rank >= MEMRT__RANK_LIVE && rank <= MEMRT__RANK_LIVE_LAST) ||
           rank == MEMRT__RANK_NAMED_REFS || rank == MEMRT__RANK_DETOUR;
}

/// Forget the threads of the parent, which the child does not have.
static void reset_counts(memrt__rank_t rank)
{
    memrt__store_relaxed(&locks[rank].steps, 0);
    memrt__store_relaxed(&locks[rank].waiting, 0);
}

static void reinit_lock(memrt__rank_t rank)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, MUTEX_TYPE);
    pthread_mutex_init(&locks[rank].mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    reset_counts(rank);
}

static void reinit_free_locks(void)
{
    for (int rank = 0; rank < MEMRT__RANKS; rank++) {
        if (is_free_in_forks((memrt__rank_t)rank)) {
            reinit_lock((memrt__rank_t)rank);
        }
    }
}

/// Repair the child where its first lock is taken before memrt's own fork handler runs there. The
/// compare-and-swap lets one thread do so.
static void repair_child(void)
{
    size_t before = memrt__load_relaxed(&process), now = memrt__os_process_id();
    if (before != now && memrt__cas_relaxed(&process, before, now)) {
        reinit_free_locks();
        on_child();
    }
}

static inline void check_for_child(void)
{
    if (MEMRT__UNLIKELY(memrt__load_relaxed(&fork_start) != 0)) {
        repair_child();
    }
}

static inline bool is_held_by_own_fork(memrt__rank_t rank)
{
    return MEMRT__UNLIKELY(is_forking_thread) && !is_free_in_forks(rank);
}

#if MEMRT_DEBUG

static MEMRT__THREAD_LOCAL uint64_t held_ranks; /* locks of the calling thread, one bit each */

bool memrt__lock_is_held(memrt__rank_t rank)
{
    return is_held_by_own_fork(rank) || (held_ranks >> rank & 1) != 0;
}

/// Return whether the calling thread holds neither the lock nor a lock of a later rank. A forking
/// thread holds nearly all locks and may take the remaining locks in any order.
static bool is_in_order(memrt__rank_t rank)
{
    return is_forking_thread || held_ranks >> rank == 0;
}

/// Return whether the calling thread holds only locks that forks leave free. While the thread holds
/// any further lock, no fork can be in progress.
static bool holds_only_free_locks(void)
{
    bool only_free = true;
    for (int rank = 0; rank < MEMRT__RANKS && !is_forking_thread; rank++) {
        bool held = (held_ranks >> rank & 1) != 0;
        only_free = only_free && (!held || is_free_in_forks((memrt__rank_t)rank));
    }
    return only_free;
}

static void note_taken(memrt__rank_t rank)
{
    held_ranks |= (uint64_t)1 << rank;
}

/// Record the result of an attempt to take a lock, and return the result.
static bool note_attempt(memrt__rank_t rank, bool taken)
{
    MEMRT__ASSERT(taken || holds_only_free_locks());
    if (taken) {
        note_taken(rank);
    }
    return taken;
}

static void note_released(memrt__rank_t rank)
{
    held_ranks &= ~((uint64_t)1 << rank);
}

static void note_all_released(void)
{
    held_ranks = 0;
}

#else

static inline void note_taken(memrt__rank_t rank)
{
    (void)rank;
}

static inline bool note_attempt(memrt__rank_t rank, bool taken)
{
    (void)rank;
    return taken;
}

static inline void note_released(memrt__rank_t rank)
{
    (void)rank;
}

static inline void note_all_released(void)
{
}

#endif

static void begin_wait(lock_line_t *line)
{
    memrt__fetch_add_relaxed(&line->waiting, 1);
}

static void end_wait(lock_line_t *line, bool taken)
{
    memrt__fetch_add_relaxed(&line->waiting, (size_t)-1);
    if (taken) {
        memrt__own_add(&line->served, 1);
    }
}

/// Take the lock beside threads that work in steps.
MEMRT__COLD static void wait_for_step(lock_line_t *line)
{
    begin_wait(line);
    pthread_mutex_lock(&line->mutex);
    end_wait(line, true);
}

void memrt__lock(memrt__rank_t rank)
{
    MEMRT__ASSERT(rank < MEMRT__RANKS);
    check_for_child();
    if (!is_held_by_own_fork(rank)) {
        lock_line_t *line = &locks[rank];
        MEMRT__ASSERT(is_in_order(rank));
        if (MEMRT__LIKELY(memrt__load_relaxed(&line->steps) == 0)) {
            pthread_mutex_lock(&line->mutex);
        } else {
            wait_for_step(line);
        }
        note_taken(rank);
    }
}

void memrt__unlock(memrt__rank_t rank)
{
    MEMRT__ASSERT_HELD(rank);
    if (!is_held_by_own_fork(rank)) {
        note_released(rank);
        pthread_mutex_unlock(&locks[rank].mutex);
    }
}

bool memrt__lock_is_forking(void)
{
    return memrt__load_acquire(&fork_start) != 0;
}

bool memrt__lock_is_mine(void)
{
    return is_forking_thread;
}

static bool is_fork_slow(void)
{
    uint64_t began = memrt__load_acquire(&fork_start);
    return began != 0 && memrt__os_now_ns() - began >= PATIENCE;
}

/// Try to take the lock, for at most a millisecond.
static bool try_lock_briefly(memrt__rank_t rank)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)MEMRT__MS;
    until.tv_sec += until.tv_nsec / (long)MEMRT__SECOND;
    until.tv_nsec %= (long)MEMRT__SECOND;
    return pthread_mutex_timedlock(&locks[rank].mutex, &until) == 0;
}

MEMRT__COLD static bool lock_unless_fork_slow(memrt__rank_t rank)
{
    bool taken = false;
    begin_wait(&locks[rank]);
    while (!taken && !is_fork_slow()) {
        taken = try_lock_briefly(rank);
    }
    end_wait(&locks[rank], taken);
    return taken;
}

bool memrt__lock_or_fork(memrt__rank_t rank)
{
    MEMRT__ASSERT(rank < MEMRT__RANKS && is_in_order(rank));
    check_for_child();
    return note_attempt(rank, is_held_by_own_fork(rank) ||
                                  MEMRT__LIKELY(pthread_mutex_trylock(&locks[rank].mutex) == 0) ||
                                  lock_unless_fork_slow(rank));
}

void memrt__lock_begin_steps(memrt__rank_t rank)
{
    memrt__fetch_add_relaxed(&locks[rank].steps, 1);
}

void memrt__lock_end_steps(memrt__rank_t rank)
{
    memrt__fetch_add_relaxed(&locks[rank].steps, (size_t)-1);
}

/// Maximum number of yields to a thread that waits for a lock. A thread that the system does not
/// run, for example because of its priority, delays the caller by a millisecond or two.
#define YIELDS_MAX 1000

/// A thread that began to wait before the first step is not counted, and gets the lock if the
/// system lets the thread run at the moment of the release.
bool memrt__lock_pass(memrt__rank_t rank)
{
    MEMRT__ASSERT_HELD(rank);
    lock_line_t *line = &locks[rank];
    if (is_held_by_own_fork(rank)) {
        return true;
    }
    size_t served = memrt__load_relaxed(&line->served);
    memrt__unlock(rank);
    for (int yields = 0; yields < YIELDS_MAX && memrt__load_relaxed(&line->waiting) != 0 &&
                         memrt__load_relaxed(&line->served) == served;
         yields++) {
        sched_yield();
    }
    return memrt__lock_or_fork(rank);
}

void memrt__lock_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

int memrt__lock_wait(memrt__rank_t rank, pthread_cond_t *condition, uint64_t until)
{
    MEMRT__SHIELD;
    MEMRT__ASSERT_HELD(rank);
    struct timespec time = {(time_t)(until / MEMRT__SECOND), (long)(until % MEMRT__SECOND)};
    return pthread_cond_timedwait(condition, &locks[rank].mutex, &time);
}

void memrt__lock_at_fork(void (*child)(void))
{
    on_child = child;
}

void memrt__lock_all(void)
{
    for (int rank = 0; rank < MEMRT__RANKS; rank++) {
        if (!is_free_in_forks((memrt__rank_t)rank)) {
            memrt__lock((memrt__rank_t)rank);
        }
    }
    memrt__store_relaxed(&process, memrt__os_process_id());
    MEMRT__ASSERT(!is_forking_thread);
    is_forking_thread = true;
    memrt__store_release(&fork_start, (size_t)memrt__os_now_ns());
}

void memrt__lock_end_fork(void)
{
    memrt__store_release(&fork_start, 0);
}

void memrt__unlock_all(void)
{
    MEMRT__ASSERT(is_forking_thread);
    memrt__lock_end_fork();
    is_forking_thread = false;
    for (int rank = MEMRT__RANKS - 1; rank >= 0; rank--) {
        if (!is_free_in_forks((memrt__rank_t)rank)) {
            memrt__unlock((memrt__rank_t)rank);
        }
    }
}

void memrt__lock_renew_all(void)
{
    MEMRT__ASSERT(is_forking_thread);
    reinit_free_locks();
    for (int rank = 0; rank < MEMRT__RANKS; rank++) {
        if (!is_free_in_forks((memrt__rank_t)rank)) {
            reset_counts((memrt__rank_t)rank);
            /* wakes threads that handlers of other libraries started in the child */
            pthread_mutex_unlock(&locks[rank].mutex);
        }
    }
    note_all_released();
    memrt__lock_end_fork();
    is_forking_thread = false;
}
