#include "runtime/stats/shard.h"

#include "runtime/base/lock.h"

memrt__account_t memrt__process;

static memrt__account_t *first_account; /* under the lock of rank THREADS */

/// Release, partner: the acquire load of who reads the peak, and then the sums.
static void keep_peak(memrt__account_t *account, size_t rise)
{
    memrt__raise_release(&account->peak, memrt__load_relaxed(&account->flushed) + rise);
}

/// Release, partner: the acquire load of who reads a peak. Whoever sees the change sees the gauge
/// that it came from at rest, so that it is not added twice.
static void tell(memrt__account_t *account, size_t change, size_t rise)
{
    size_t before = memrt__fetch_add_release(&account->flushed, change);
    memrt__raise_release(&account->peak, before + rise);
}

/// Meanwhile the gauge shows no rise, whatever it was told. The releases are partners of the
/// acquire loads of who reads a gauge: when it shows none, the peak has it.
void memrt__gauge_tell(memrt__shard_t *shard, memrt__account_t *account)
{
    size_t net = memrt__shard_net(shard);
    size_t change = net - shard->told, rise = shard->high - shard->told;
    keep_peak(account, rise);
    keep_peak(&memrt__process, rise);
    memrt__store_release(&shard->high, MEMRT__GAUGE_TELLS);
    tell(account, change, rise);
    tell(&memrt__process, change, rise);
    memrt__store_release(&shard->told, net);
    memrt__store_release(&shard->high, net);
    memrt__store_relaxed(&shard->low, net - (size_t)MEMRT__GAUGE_FALL);
}

/// Release, partner: the acquire load of who reads a gauge, and then the sums.
void memrt__gauge_rose(memrt__shard_t *shard, memrt__account_t *account)
{
    size_t net = memrt__shard_net(shard);
    memrt__store_release(&shard->high, net);
    if ((ptrdiff_t)(net - shard->told) > MEMRT__GAUGE_RISE) {
        memrt__gauge_tell(shard, account);
    }
}

void memrt__account_add_shared(memrt__account_t *account, size_t bytes)
{
    tell(account, bytes, bytes);
    tell(&memrt__process, bytes, bytes);
    memrt__store_relaxed(&account->past_gauges, 1);
    memrt__store_relaxed(&memrt__process.past_gauges, 1);
}

void memrt__account_enter(memrt__account_t *account)
{
    memrt__lock(MEMRT__RANK_THREADS);
    account->next = first_account;
    first_account = account;
    memrt__unlock(MEMRT__RANK_THREADS);
}

memrt__account_t *memrt__account_first(void)
{
    return first_account;
}

void memrt__account_leave(memrt__account_t *account)
{
    memrt__account_t **link = &first_account;
    while (*link != account) {
        link = &(*link)->next;
    }
    *link = account->next;
}
