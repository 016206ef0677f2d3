#include "runtime/pressure/pressure_thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>

#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/base/shield.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"
#include "runtime/os/pressure_source.h"
#include "runtime/policy/memory_limit.h"
#include "runtime/policy/policy_allocators.h"
#include "runtime/policy/soft_limit.h"
#include "runtime/pressure/headroom.h"
#include "runtime/pressure/pressure_callbacks.h"

/* Relaxed; written under the lock of rank PRESSURE: */
size_t memrt__pressure_runs;
static size_t process; /* id of the process that started `thread` */

/* Under the lock of rank PRESSURE: */
static pthread_t thread;
static bool joinable; /* `thread` was started and is not joined yet */
static uint64_t turn; /* of the serving thread; a thread of another turn ends */
static bool away;     /* the serving thread runs code that may wait for other threads */
static bool hurried;  /* the serving thread must not sleep */
static bool ended;    /* the process ends: no further starts */
static memrt__pressure_state_t state;
static memrt_pressure_source_t source_kind;

bool memrt__pressure_is_wanted(void)
{
    return memrt__load_relaxed(&memrt__pressure_callbacks) != 0 || memrt__limit_follows_system() ||
           memrt__soft_limit_exists();
}

/// Reset the results of the last check, because no thread serves.
static void reset_results(void)
{
    memrt__store_relaxed(&memrt__pressure_runs, 0);
    memrt__store_relaxed(&memrt__soft_limits_above, 0);
    source_kind = MEMRT_PRESSURE_HEADROOM;
    state = (memrt__pressure_state_t){0};
}

/* --- The thread. --- */

#define PERIOD (500 * MEMRT__MS)
#define PERIOD_NEAR (100 * MEMRT__MS)
#define NEAR 700u /* thousandths of the limit from which PERIOD_NEAR holds */

/// Return whether the thread of turn `mine` may go on, and still has work. Under the lock.
static bool is_serving(uint64_t mine)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PRESSURE);
    return turn == mine && memrt__pressure_is_wanted();
}

static size_t count_exceeded_soft_limits(void)
{
    return memrt__load_relaxed(&memrt__soft_limits_above);
}

/// Sleep until the next check. Under the lock.
static void sleep_one_period(uint64_t mine, uint32_t permille)
{
    bool is_near = permille >= NEAR || count_exceeded_soft_limits() != 0;
    uint64_t period = is_near ? PERIOD_NEAR : PERIOD;
    uint64_t until = memrt__os_now_ns() + period;
    int status = 0;
    while (turn == mine && !hurried && status != ETIMEDOUT) {
        status = memrt__lock_wait(MEMRT__RANK_PRESSURE, &memrt__pressure_change, until);
    }
    hurried = false;
}

/// Release the lock for code that may wait for other threads. A fork does not wait for the end of
/// the code, but ends the turn. After end_away(), the caller must therefore check the turn.
static void begin_away(void)
{
    away = true;
    memrt__unlock(MEMRT__RANK_PRESSURE);
}

static void end_away(uint64_t mine)
{
    memrt__lock(MEMRT__RANK_PRESSURE);
    away = turn == mine ? false : away;
}

/// Call the callbacks whose level was reached since the last check, with the lock released during a
/// call.
static void call_callbacks(uint64_t mine, memrt_pressure_level_t level)
{
    memrt__pressure_call_t call;
    size_t at = 0;
    while (turn == mine && memrt__pressure_callbacks_begin(&at, level, &call)) {
        begin_away();
        call.callback(call.context, level);
        end_away(mine);
        memrt__pressure_callbacks_end(&call);
    }
}

/// Release cached memory when the level rises, before callbacks give up memory of the program.
static void release_memory(uint64_t mine, memrt_pressure_level_t before,
                           memrt_pressure_level_t level)
{
    if (level > before && level >= MEMRT_PRESSURE_MEDIUM) {
        begin_away();
        (void)memrt__policy_release_unused();
        end_away(mine);
    }
}

/// Data of the thread.
typedef struct service {
    uint64_t turn;
    memrt__pressure_source_t source;
    bool has_source;              ///< `source` is open
    memrt_pressure_level_t level; ///< at the last check
} service_t;

/// Open the source at the first check of the level. Without the lock.
static void ensure_source(service_t *service)
{
    if (!service->has_source) {
        memrt__pressure_source_open(&service->source);
        service->has_source = true;
    }
}

/// Compute the level and call callbacks. Returns the thousandths of the limit in use. Under the
/// lock, which is released during readings and calls.
static uint32_t check_level(service_t *service)
{
    memrt__unlock(MEMRT__RANK_PRESSURE);
    ensure_source(service);
    memrt_pressure_level_t signal = memrt__pressure_source_read(&service->source);
    memrt__headroom_t room = memrt__headroom_read();
    memrt__lock(MEMRT__RANK_PRESSURE);
    if (turn != service->turn) {
        return 0;
    }
    source_kind = service->source.kind;
    memrt_pressure_level_t before = service->level;
    service->level = memrt__pressure_raise(
        memrt__pressure_update(&state, room.permille, signal, memrt__os_now_ns()),
        count_exceeded_soft_limits());
    release_memory(service->turn, before, service->level);
    call_callbacks(service->turn, service->level);
    return room.permille;
}

/// Adapt the limits "auto" to the limits of the system, with the lock released meanwhile.
static void follow_limits(void)
{
    memrt__unlock(MEMRT__RANK_PRESSURE);
    memrt__limit_follow_system();
    memrt__soft_limit_follow();
    memrt__lock(MEMRT__RANK_PRESSURE);
}

/// Handle rises above soft limits. Reclaim callbacks run, so a fork does not wait meanwhile.
static void handle_soft_limits(uint64_t mine)
{
    begin_away();
    bool risen = memrt__soft_limits_handle();
    end_away(mine);
    if (turn == mine && risen) {
        memrt__pressure_callbacks_renew();
    }
}

/// Serve until there is no work, or another thread stops this thread. Under the lock.
static void serve(service_t *service)
{
    while (is_serving(service->turn)) {
        follow_limits();
        uint32_t permille = 0;
        if (turn == service->turn) {
            handle_soft_limits(service->turn);
        }
        if (memrt__load_relaxed(&memrt__pressure_callbacks) != 0 && turn == service->turn) {
            permille = check_level(service);
        }
        sleep_one_period(service->turn, permille);
    }
    if (turn == service->turn) {
        reset_results();
    }
}

static void *run_pressure_thread(void *context)
{
    service_t service = {.turn = (uint64_t)(uintptr_t)context};
    memrt__lock(MEMRT__RANK_PRESSURE);
    serve(&service);
    memrt__unlock(MEMRT__RANK_PRESSURE);
    if (service.has_source) {
        memrt__pressure_source_close(&service.source);
    }
    return NULL;
}

/* --- Start and stop. --- */

/// Start the thread with all signals blocked.
static bool start_thread(void)
{
    MEMRT__KEEP_ERRNO;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int status = pthread_create(&thread, NULL, run_pressure_thread, (void *)(uintptr_t)turn);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status == 0;
}

bool memrt__pressure_hurry(void)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PRESSURE);
    hurried = true;
    pthread_cond_broadcast(&memrt__pressure_change);
    if (memrt__load_relaxed(&memrt__pressure_runs) != 0 || ended || memrt__lock_is_forking() ||
        !memrt__pressure_is_wanted()) {
        return true;
    }
    if (joinable) { /* the thread ended by itself, or is about to */
        pthread_detach(thread);
    }
    turn++;
    away = false;
    memrt__store_relaxed(&process, memrt__os_process_id());
    joinable = start_thread();
    memrt__store_relaxed(&memrt__pressure_runs, joinable);
    return joinable;
}

void memrt__pressure_start(void)
{
    memrt__pressure_callbacks_start();
    if (memrt__pressure_is_wanted() && !memrt__lock_is_forking() &&
        memrt__lock_or_fork(MEMRT__RANK_PRESSURE)) {
        (void)memrt__pressure_hurry();
        memrt__unlock(MEMRT__RANK_PRESSURE);
    }
}

memrt_pressure_source_t memrt__pressure_last_state(memrt__pressure_state_t *out)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PRESSURE);
    *out = state;
    return source_kind;
}

/// Wait for the end of the thread. The caller is about to fork or to end the process.
static void join_thread(pthread_t ending)
{
    MEMRT__SHIELD;
    pthread_join(ending, NULL);
}

/// End the turn of the thread, and wait for the end of the thread unless the thread is away.
static void stop_thread(bool for_good)
{
    memrt__lock(MEMRT__RANK_PRESSURE);
    bool mine = joinable, waits = joinable && !away;
    pthread_t ending = thread;
    joinable = false;
    ended |= for_good;
    turn++;
    reset_results();
    pthread_cond_broadcast(&memrt__pressure_change);
    memrt__unlock(MEMRT__RANK_PRESSURE);
    if (waits) {
        join_thread(ending);
    } else if (mine) {
        pthread_detach(ending);
    }
}

/// Return true if this process started the thread. A child made without fork handlers, for example
/// by clone(), has no such thread, and may find the lock held.
static bool is_thread_of_this_process(void)
{
    return memrt__load_relaxed(&process) == memrt__os_process_id();
}

void memrt__pressure_stop(void)
{
    if (is_thread_of_this_process()) {
        stop_thread(false);
    }
}

void memrt__pressure_forked(void)
{
    joinable = false;
    turn++;
    reset_results();
    memrt__pressure_callbacks_forked();
}

/// Stop the thread at exit, or when the library is unloaded.
__attribute__((destructor)) static void stop_at_exit(void)
{
    if (is_thread_of_this_process()) {
        stop_thread(true);
    }
}

#if MEMRT_DEBUG

bool memrt__pressure_is_valid(void)
{
    memrt__lock(MEMRT__RANK_PRESSURE);
    bool valid = MEMRT__HOLDS(memrt__pressure_runs <= 1) &&
                 MEMRT__HOLDS(memrt__pressure_runs == 0 || joinable) &&
                 memrt__pressure_callbacks_is_valid();
    memrt__unlock(MEMRT__RANK_PRESSURE);
    return valid;
}

#endif
