#include "runtime/alloc/heap/purger.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/alloc/heap/large_cache.h"
#include "runtime/alloc/heap/large_cache_purge.h"
#include "runtime/alloc/heap/pages/page_heap.h"
#include "runtime/base/shield.h"
#include "runtime/base/size.h"
#include "runtime/config/options.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"

size_t memrt__purger_runs;

/* Relaxed; written under the lock of rank PURGER: */
static size_t process;  /* id of the process that started `thread` */
static size_t stopping; /* 1: the thread must end */

/* Under the lock of rank PURGER: */
static pthread_t thread;
static bool joinable;     /* `thread` was started and is not joined yet */
static bool hurried;      /* the thread must not sleep */
static unsigned refusals; /* consecutive starts that the system refused */
static size_t skips;      /* coming calls that start no thread */
static bool ended;        /* the process ends: no further starts */

static pthread_cond_t stop;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_condition(void)
{
    memrt__lock_condition(&stop);
}

#define PERIOD_MIN (5 * MEMRT__MS)

static size_t get_decay(void)
{
    return memrt__load_relaxed(&memrt__options.decay);
}

/// Return the shortest decay in milliseconds, or MEMRT__DECAY_NEVER if memory never goes back by
/// time.
static size_t get_shortest_decay(void)
{
    return memrt__size_min(get_decay(), memrt__load_relaxed(&memrt__large_cache_shortest));
}

/// Return the time between purges: half of the decay, so that memory stays for at most 1.5 decays.
/// The minimum is PERIOD_MIN.
static uint64_t compute_period(size_t decay)
{
    return decay == MEMRT__DECAY_NEVER ? PERIOD_MIN
                                       : memrt__size_max(decay * MEMRT__MS / 2, PERIOD_MIN);
}

/// Return false if the thread must end, because a fork or the end of the process waits for the end.
static bool is_going_on(void)
{
    return memrt__load_relaxed(&stopping) == 0;
}

/// Sleep for one period. Returns false if the thread must stop. Under the lock of rank PURGER.
static bool sleep_one_period(void)
{
    uint64_t until = memrt__os_now_ns() + compute_period(get_shortest_decay());
    int status = 0;
    MEMRT__ASSERT_HELD(MEMRT__RANK_PURGER);
    hurried = false;
    while (is_going_on() && !hurried && status != ETIMEDOUT) {
        status = memrt__lock_wait(MEMRT__RANK_PURGER, &stop, until);
    }
    return is_going_on();
}

/* Cache above the page heap; fixed after the start of the runtime, NULL before. */
static const memrt__purged_t *upper;

void memrt__purger_add(const memrt__purged_t *cache)
{
    upper = cache;
}

/// Return true if there is cached memory that goes back after a decay.
static bool has_aging_memory(void)
{
    bool pages = get_decay() != MEMRT__DECAY_NEVER &&
                 (memrt__page_heap_aging() != 0 || (upper != NULL && upper->is_aging()));
    return pages || memrt__large_cache_aging() != 0;
}

/// Purge pages if the purge is due. A purge gives back pages that were free at the previous purge.
/// The decay of the process therefore sets the period, even if a policy has a shorter decay.
/// Returns the time of the next purge.
static uint64_t purge_pages(uint64_t now, uint64_t due)
{
    size_t decay = get_decay();
    if (decay == MEMRT__DECAY_NEVER || now < due) {
        return due;
    }
    if (upper != NULL) {
        upper->purge();
    }
    memrt__page_heap_purge_while(false, is_going_on);
    return now + compute_period(decay);
}

/// Run one round of purges. Returns true if there is memory to give back later.
static bool purge_once(uint64_t *due)
{
    uint64_t now = memrt__os_now_ns();
    *due = purge_pages(now, *due);
    memrt__large_cache_purge_old(now);
    return has_aging_memory();
}

#define IDLE_ROUNDS 4 /* rounds without work before the thread ends */

static void run_purge_rounds(void)
{
    int idle = 0;
    uint64_t due = 0; /* time of the next purge of pages */
    memrt__lock(MEMRT__RANK_PURGER);
    while (idle < IDLE_ROUNDS && sleep_one_period()) {
        memrt__unlock(MEMRT__RANK_PURGER);
        idle = purge_once(&due) ? 0 : idle + 1;
        memrt__lock(MEMRT__RANK_PURGER);
    }
    memrt__store_relaxed(&memrt__purger_runs, 0);
    memrt__unlock(MEMRT__RANK_PURGER);
}

/// Return true if the thread must serve again. A thread that cached memory after the last round,
/// and saw the purger running, did not start another. The locks of the caches order both steps.
/// Either the purger sees the memory here, or the other thread saw that no purger runs.
static bool should_serve_again(void)
{
    memrt__fence_full(); /* partner: the fence of a thread that cached memory without a lock */
    bool left = has_aging_memory();
    memrt__lock(MEMRT__RANK_PURGER);
    bool own = joinable && pthread_equal(thread, pthread_self());
    bool again = left && own && is_going_on() && memrt__load_relaxed(&memrt__purger_runs) == 0;
    if (again) {
        memrt__store_relaxed(&memrt__purger_runs, 1);
    }
    memrt__unlock(MEMRT__RANK_PURGER);
    return again;
}

static void *run_purger_thread(void *context)
{
    do {
        run_purge_rounds();
    } while (should_serve_again());
    return context;
}

/// Start the purger thread with all signals blocked.
static bool start_thread(void)
{
    MEMRT__KEEP_ERRNO;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int status = pthread_create(&thread, NULL, run_purger_thread, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status == 0;
}

#define REFUSALS_MAX 10u

/// Try to start the thread. After the n-th refusal, 2^(n-1) - 1 calls pass without an attempt, so
/// that frees stay cheap in a program that may not start threads. Under the lock of rank PURGER.
static bool try_start_thread(void)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PURGER);
    MEMRT__ASSERT(is_going_on() && !ended);
    if (skips != 0) {
        skips--;
        return false;
    }
    memrt__store_relaxed(&process, memrt__os_process_id());
    bool started = start_thread();
    refusals = started ? 0 : (unsigned)memrt__size_min(refusals + 1, REFUSALS_MAX);
    MEMRT__ASSERT(started || refusals != 0);
    skips = started ? 0 : ((size_t)1 << (refusals - 1)) - 1;
    return started;
}

/// Start the thread if memory can age. Without the thread, memory goes back by limits and on
/// request only, not by time. No thread starts during a fork; the next free after the fork starts
/// the thread.
void memrt__purger_start(void)
{
    pthread_once(&once, make_condition);
    if (get_shortest_decay() == MEMRT__DECAY_NEVER || memrt__lock_is_forking() ||
        !has_aging_memory() || !memrt__lock_or_fork(MEMRT__RANK_PURGER)) {
        return;
    }
    if (memrt__load_relaxed(&memrt__purger_runs) == 0 && is_going_on() && !ended) {
        if (joinable) { /* the thread ended by itself, or is about to */
            pthread_detach(thread);
        }
        joinable = try_start_thread();
        memrt__store_relaxed(&memrt__purger_runs, joinable);
    }
    memrt__unlock(MEMRT__RANK_PURGER);
}

void memrt__purger_hurry(void)
{
    memrt__purger_wake();
    if (!memrt__lock_or_fork(MEMRT__RANK_PURGER)) {
        return;
    }
    hurried = true;
    if (joinable) {
        pthread_cond_signal(&stop);
    }
    memrt__unlock(MEMRT__RANK_PURGER);
}

/// Return true if this process started the thread. A child made without fork handlers, for example
/// by clone(), has no purger thread, and may find the lock held.
static bool is_thread_of_this_process(void)
{
    return memrt__load_relaxed(&process) == memrt__os_process_id();
}

/// Wait for the end of the thread. The caller is about to fork or to end the process.
static void join_thread(pthread_t ending)
{
    MEMRT__SHIELD;
    pthread_join(ending, NULL);
}

static void stop_thread(bool for_good)
{
    memrt__lock(MEMRT__RANK_PURGER);
    bool mine = joinable;
    pthread_t ending = thread;
    joinable = false;
    refusals = 0;
    skips = 0;
    ended |= for_good;
    if (mine) {
        memrt__store_relaxed(&stopping, 1);
        pthread_cond_signal(&stop);
    }
    memrt__unlock(MEMRT__RANK_PURGER);
    if (mine) {
        join_thread(ending);
        memrt__lock(MEMRT__RANK_PURGER);
        memrt__store_relaxed(&stopping, 0);
        memrt__unlock(MEMRT__RANK_PURGER);
    }
}

void memrt__purger_stop(void)
{
    if (is_thread_of_this_process()) {
        stop_thread(false);
    }
}

void memrt__purger_forked(void)
{
    make_condition();
    joinable = false;
    memrt__store_relaxed(&stopping, 0);
    refusals = 0;
    skips = 0;
    memrt__store_relaxed(&memrt__purger_runs, 0);
}

size_t memrt__purge_all(void)
{
    memrt__page_heap_retry();
    memrt__large_cache_retry();
    return memrt__page_heap_release() + memrt__large_cache_purge_all();
}

#if MEMRT_DEBUG

bool memrt__purger_is_valid(void)
{
    memrt__lock(MEMRT__RANK_PURGER);
    bool valid = MEMRT__HOLDS(memrt__purger_runs <= 1) &&
                 MEMRT__HOLDS(memrt__purger_runs == 0 || joinable || !is_going_on()) &&
                 MEMRT__HOLDS(is_going_on() || !joinable) &&
                 MEMRT__HOLDS(refusals <= REFUSALS_MAX) &&
                 MEMRT__HOLDS(skips < (size_t)1 << refusals);
    memrt__unlock(MEMRT__RANK_PURGER);
    return valid;
}

#endif

/// Stop the thread at exit, or when the library is unloaded.
__attribute__((destructor)) static void stop_at_exit(void)
{
    if (is_thread_of_this_process()) {
        stop_thread(true);
    }
}
