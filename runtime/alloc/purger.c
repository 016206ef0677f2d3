#include "runtime/alloc/purger.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "runtime/alloc/pages.h"
#include "runtime/alloc/warm.h"
#include "runtime/base/lock.h"
#include "runtime/base/options.h"
#include "runtime/base/os.h"
#include "runtime/base/size.h"

size_t memrt__purger_runs;

/* Relaxed; written under the lock: */
static size_t process; /* that `thread` was started in */

/* Under the lock of rank PURGER: */
static pthread_t thread;
static bool joinable; /* `thread` was started and nobody has joined it yet */
static bool stopping;
static bool hurried;
static bool ended; /* the process ends: no thread is started any more */

static pthread_cond_t stop; /* of the clock that only runs forward */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_condition(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&stop, &attributes);
    pthread_condattr_destroy(&attributes);
}

#define MS ((uint64_t)1000000) /* nanoseconds */

#define PERIOD_MIN (5 * MS)

static size_t decay_now(void)
{
    return memrt__load_relaxed(&memrt__options.decay);
}

/// Milliseconds of the shortest decay; MEMRT__DECAY_NEVER: nothing is given back by time.
static size_t shortest_decay(void)
{
    return memrt__size_min(decay_now(), memrt__load_relaxed(&memrt__warm_shortest));
}

/// Look twice in the time of the decay, so that nothing stays for longer than one and a half.
static uint64_t period(size_t decay)
{
    return decay == MEMRT__DECAY_NEVER ? PERIOD_MIN : memrt__size_max(decay * MS / 2, PERIOD_MIN);
}

/// Sleep for one period. Under the lock; false: told to stop.
static bool wait(void)
{
    uint64_t until = memrt__os_now_ns() + period(shortest_decay());
    struct timespec time = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
    int status = 0;
    hurried = false;
    while (!stopping && !hurried && status != ETIMEDOUT) {
        status = memrt__lock_wait(MEMRT__RANK_PURGER, &stop, &time);
    }
    return !stopping;
}

/// Whether anything is cached that is given back by time.
static bool is_anything_aging(void)
{
    bool pages = decay_now() != MEMRT__DECAY_NEVER && memrt__pages_cached() != 0;
    return pages || memrt__warm_aging() != 0;
}

/// Pages are given back when they were free at the purge before, so the time between two is theirs,
/// also when a policy's is shorter. Returns when the next one is due.
static uint64_t purge_pages(uint64_t now, uint64_t due)
{
    size_t decay = decay_now();
    if (decay == MEMRT__DECAY_NEVER || now < due) {
        return due;
    }
    memrt__pages_purge(false);
    return now + period(decay);
}

/// One round; whether anything is left to give back later.
static bool purge(uint64_t *due)
{
    uint64_t now = memrt__os_now_ns();
    *due = purge_pages(now, *due);
    memrt__warm_purge_old(now);
    return is_anything_aging();
}

#define IDLE_ROUNDS 4 /* with nothing to do before the thread ends */

static void serve(void)
{
    int idle = 0;
    uint64_t due = 0; /* the next purge of pages */
    memrt__lock(MEMRT__RANK_PURGER);
    while (idle < IDLE_ROUNDS && wait()) {
        memrt__unlock(MEMRT__RANK_PURGER);
        idle = purge(&due) ? 0 : idle + 1;
        memrt__lock(MEMRT__RANK_PURGER);
    }
    memrt__store_relaxed(&memrt__purger_runs, 0);
    memrt__unlock(MEMRT__RANK_PURGER);
}

/// Who cached something after the last round and saw the thread still running did not start
/// another. The locks of what is cached order the two: either it is seen here, or they saw that
/// nobody runs.
static bool goes_on(void)
{
    bool left = is_anything_aging();
    memrt__lock(MEMRT__RANK_PURGER);
    bool own = joinable && pthread_equal(thread, pthread_self());
    bool again = left && own && !stopping && memrt__load_relaxed(&memrt__purger_runs) == 0;
    if (again) {
        memrt__store_relaxed(&memrt__purger_runs, 1);
    }
    memrt__unlock(MEMRT__RANK_PURGER);
    return again;
}

static void *run(void *context)
{
    do {
        serve();
    } while (goes_on());
    return context;
}

/// No signal is for this thread.
static bool start_thread(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int status = pthread_create(&thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status == 0;
}

/// Without a thread nothing is given back by time, only by the limits and by request.
void memrt__purger_start(void)
{
    pthread_once(&once, make_condition);
    if (shortest_decay() == MEMRT__DECAY_NEVER || !is_anything_aging()) {
        return;
    }
    memrt__lock(MEMRT__RANK_PURGER);
    if (memrt__load_relaxed(&memrt__purger_runs) == 0 && !stopping && !ended) {
        if (joinable) { /* it ended by itself, or is about to */
            pthread_detach(thread);
        }
        memrt__store_relaxed(&process, memrt__os_process_id());
        joinable = start_thread();
        memrt__store_relaxed(&memrt__purger_runs, joinable);
    }
    memrt__unlock(MEMRT__RANK_PURGER);
}

void memrt__purger_hurry(void)
{
    memrt__purger_wake();
    memrt__lock(MEMRT__RANK_PURGER);
    hurried = true;
    if (joinable) {
        pthread_cond_signal(&stop);
    }
    memrt__unlock(MEMRT__RANK_PURGER);
}

/// A child that came to be without fork's handlers, as by clone(), has no such thread, and may find
/// the lock held by one.
static bool is_of_this_process(void)
{
    return memrt__load_relaxed(&process) == memrt__os_process_id();
}

static void stop_thread(bool for_good)
{
    memrt__lock(MEMRT__RANK_PURGER);
    bool mine = joinable;
    pthread_t ending = thread;
    joinable = false;
    ended |= for_good;
    if (mine) {
        stopping = true;
        pthread_cond_signal(&stop);
    }
    memrt__unlock(MEMRT__RANK_PURGER);
    if (mine) {
        pthread_join(ending, NULL);
        memrt__lock(MEMRT__RANK_PURGER);
        stopping = false;
        memrt__unlock(MEMRT__RANK_PURGER);
    }
}

void memrt__purger_stop(void)
{
    if (is_of_this_process()) {
        stop_thread(false);
    }
}

void memrt__purger_forked(void)
{
    make_condition();
    joinable = stopping = false;
    memrt__store_relaxed(&memrt__purger_runs, 0);
}

size_t memrt__purge_all(void)
{
    return memrt__pages_purge(true) + memrt__warm_purge_all();
}

/// At exit, or when the library is unloaded.
__attribute__((destructor)) static void end(void)
{
    if (is_of_this_process()) {
        stop_thread(true);
    }
}
