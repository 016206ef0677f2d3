#include "runtime/base/lock.h"
#include "runtime/stats/stats.h"

/// In a forked child gauges and levels are as other threads left them in the middle of telling.

typedef void (*account_fn)(memrt__account_t *account);

static void each_account(account_fn act)
{
    for (memrt__account_t *a = memrt__account_first(); a != NULL; a = a->next) {
        act(a);
    }
}

static memrt__shard_t *shard_of(const memrt__thread_t *thread, const memrt__account_t *account)
{
    return memrt__thread_shard(thread, account->index);
}

static void keep_peak(memrt__level_t *level, size_t rise)
{
    for (; level != NULL; level = level->up) {
        memrt__raise_release(&level->peak, level->flushed + rise);
    }
}

/// A rise that is more than a gauge hides was being told.
static void keep_rises(memrt__account_t *account)
{
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        const memrt__shard_t *shard = shard_of(t, account);
        size_t rise = shard == NULL ? 0 : memrt__gauge_rise(shard);
        if ((ptrdiff_t)rise <= MEMRT__GAUGE_RISE) {
            keep_peak(account->policy, rise);
            keep_peak(account->scope, rise);
        }
    }
}

static void forget(memrt__level_t *level)
{
    for (; level != NULL; level = level->up) {
        level->flushed = level->gauges = 0;
    }
}

static void forget_told(memrt__account_t *account)
{
    forget(account->policy);
    forget(account->scope);
}

static void tell(memrt__level_t *level, size_t bytes)
{
    for (; level != NULL; level = level->up) {
        level->flushed += bytes;
    }
}

static void tell_net(const memrt__shard_t *shard, memrt__account_t *account)
{
    tell(account->policy, memrt__shard_net(shard));
    tell(account->scope, memrt__shard_net(shard));
}

static void rest_and_tell(memrt__account_t *account)
{
    tell_net(account->shared, account);
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        memrt__shard_t *shard = shard_of(t, account);
        if (shard != NULL) {
            shard->high = shard->low = shard->told = memrt__shard_net(shard);
            tell_net(shard, account);
        }
    }
}

static void keep_told(memrt__account_t *account)
{
    keep_peak(account->policy, 0);
    keep_peak(account->scope, 0);
}

void memrt__stats_forked(void)
{
    memrt__lock(MEMRT__RANK_THREADS);
    each_account(keep_rises);
    each_account(forget_told);
    each_account(rest_and_tell);
    each_account(keep_told);
    memrt__unlock(MEMRT__RANK_THREADS);
}
