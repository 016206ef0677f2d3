#include "runtime/os/lock.h"
#include "runtime/stats/stats.h"

/// Recomputes gauges and aggregates in a forked child from the counters of the shards. At the fork,
/// other threads of the parent may have been in the middle of a report.

typedef void (*account_fn)(memrt__account_t *account);

static void visit_all_accounts(account_fn act)
{
    for (memrt__account_t *a = memrt__account_first(); a != NULL; a = a->next) {
        act(a);
    }
}

static memrt__shard_t *get_shard(const memrt__thread_t *thread, const memrt__account_t *account)
{
    return memrt__thread_shard(thread, account->index);
}

/// Raise the peaks by the unreported rises of an account's gauges. A rise above MEMRT__GAUGE_RISE
/// was being reported at the fork and is skipped.
static void raise_peaks_by_rises(memrt__account_t *account)
{
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        const memrt__shard_t *shard = get_shard(t, account);
        size_t rise = shard == NULL ? 0 : memrt__gauge_rise(shard);
        if ((ptrdiff_t)rise <= MEMRT__GAUGE_RISE) {
            memrt__level_raise_peaks(account->policy, rise);
            memrt__level_raise_peaks(account->scope, rise);
        }
    }
}

/// Clear the sums. A use above a soft limit is a new rise in the child, because callbacks of the
/// parent had no effect there.
static void clear_aggregates(memrt__level_t *level)
{
    for (; level != NULL; level = level->up) {
        level->flushed = level->gauges = level->hidden = level->promised = 0;
        level->soft_state = MEMRT__SOFT_BELOW;
    }
}

static void clear_account_aggregates(memrt__account_t *account)
{
    clear_aggregates(account->policy);
    clear_aggregates(account->scope);
}

static void add_to_aggregates(memrt__level_t *level, size_t bytes)
{
    for (; level != NULL; level = level->up) {
        level->flushed += bytes;
    }
}

static void add_shard_net(const memrt__shard_t *shard, memrt__account_t *account)
{
    add_to_aggregates(account->policy, memrt__shard_net(shard));
    add_to_aggregates(account->scope, memrt__shard_net(shard));
}

static void rest_and_add_account(memrt__account_t *account)
{
    account->shared->promised = 0;
    add_shard_net(account->shared, account);
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        memrt__shard_t *shard = get_shard(t, account);
        if (shard != NULL) {
            memrt__gauge_forked(shard);
            add_shard_net(shard, account);
        }
    }
}

static void raise_account_peaks(memrt__account_t *account)
{
    memrt__level_raise_peaks(account->policy, 0);
    memrt__level_raise_peaks(account->scope, 0);
}

static uint64_t generation; /* changes only in a child with a single thread */

uint64_t memrt__stats_generation(void)
{
    return generation;
}

void memrt__stats_forked(void)
{
    generation++;
    memrt__lock(MEMRT__RANK_THREADS);
    visit_all_accounts(raise_peaks_by_rises);
    visit_all_accounts(clear_account_aggregates);
    visit_all_accounts(rest_and_add_account);
    visit_all_accounts(raise_account_peaks);
    memrt__unlock(MEMRT__RANK_THREADS);
}
