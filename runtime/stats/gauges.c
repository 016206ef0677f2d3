#include "runtime/stats/gauges.h"

#include <sched.h>

#include "runtime/os/lock.h"
#include "runtime/os/os.h"

/// Return whether only the caller can change the record. Under the lock of rank THREADS.
static bool can_change_record(const memrt__thread_t *thread)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_THREADS);
    return thread == memrt__self || !thread->in_use;
}

void memrt__gauges_rest_account(memrt__account_t *account)
{
    MEMRT__ASSERT(account->index < MEMRT__ACCOUNTS);
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        memrt__shard_t *shard = memrt__thread_shard(t, account->index);
        if (shard != NULL && can_change_record(t)) {
            memrt__gauge_rest(shard, account);
        }
    }
}

void memrt__stats_rest_gauges(void)
{
    memrt__lock(MEMRT__RANK_THREADS);
    for (memrt__account_t *a = memrt__account_first(); a != NULL; a = a->next) {
        memrt__gauges_rest_account(a);
    }
    memrt__unlock(MEMRT__RANK_THREADS);
}

/// Bring all gauges of a record to rest when its thread ended.
static void rest_gauges_of_record(memrt__thread_t *thread)
{
    if (!memrt__lock_or_fork(MEMRT__RANK_THREADS)) {
        return;
    }
    for (memrt__account_t *a = memrt__account_first(); a != NULL; a = a->next) {
        memrt__shard_t *shard = memrt__thread_shard(thread, a->index);
        if (shard != NULL && !memrt__gauge_is_at_rest(shard)) {
            memrt__gauge_rest(shard, a);
        }
    }
    memrt__unlock(MEMRT__RANK_THREADS);
}

void memrt__gauges_start(void)
{
    static const memrt__thread_module_t module = {{[MEMRT__THREAD_ENDED] = rest_gauges_of_record}};
    memrt__thread_add_module(&module);
}

/// Return whether another thread has a gauge of the account that is not at rest. Only the other
/// thread may report the gauge.
static bool has_active_gauge(const memrt__account_t *account)
{
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        const memrt__shard_t *shard = memrt__thread_shard(t, account->index);
        if (shard != NULL && !can_change_record(t) && !memrt__gauge_seems_at_rest(shard)) {
            return true;
        }
    }
    return false;
}

static bool has_any_active_gauge(void)
{
    bool active = false;
    memrt__lock(MEMRT__RANK_THREADS);
    for (memrt__account_t *a = memrt__account_first(); a != NULL && !active; a = a->next) {
        active = has_active_gauge(a);
    }
    memrt__unlock(MEMRT__RANK_THREADS);
    return active;
}

void memrt__stats_await_rest(void)
{
    uint64_t until = memrt__os_now_ns() + MEMRT__STATS_PATIENCE;
    while (has_any_active_gauge() && memrt__os_now_ns() < until) {
        sched_yield();
    }
}

/// Return whether the reported bytes and the rise of a gauge exceed its current bytes in use, or
/// might, because the gauge reports now.
static bool may_exceed_use(const memrt__shard_t *shard)
{
    size_t out = memrt__shard_bytes_out(shard), net = memrt__shard_bytes_in(shard) - out;
    size_t now = net - memrt__load_relaxed(&shard->reported);
    bool reports = memrt__load_relaxed(&shard->high) == MEMRT__GAUGE_REPORTS;
    return reports || (ptrdiff_t)memrt__gauge_rise(shard) > (ptrdiff_t)now;
}

void memrt__gauges_mark_rises(memrt__account_t *account, memrt__level_t *level)
{
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        const memrt__shard_t *shard = memrt__thread_shard(t, account->index);
        if (shard != NULL && !can_change_record(t) && may_exceed_use(shard)) {
            memrt__store_relaxed(&level->past_gauges, 1);
        }
    }
}
