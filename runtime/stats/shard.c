#include "runtime/stats/shard.h"

#include "runtime/base/lock.h"
#include "runtime/base/options.h"

memrt__level_t memrt__process;

static memrt__account_t *first_account; /* under the lock of rank THREADS */

/// Release, partner: the acquire load of who reads the peak, and then the sums.
static void keep_peak(memrt__level_t *level, size_t rise)
{
    for (; level != NULL; level = level->up) {
        memrt__raise_release(&level->peak, memrt__load_relaxed(&level->flushed) + rise);
    }
}

/// Release, partner: the acquire load of who reads a peak. Whoever sees the change sees the gauge
/// that it came from at rest, so that it is not added twice.
static void tell(memrt__level_t *level, size_t change, size_t rise)
{
    for (; level != NULL; level = level->up) {
        size_t before = memrt__fetch_add_release(&level->flushed, change);
        memrt__raise_release(&level->peak, before + rise);
    }
}

/// The one or other gauge more hides something, or rests.
static void count_gauges(memrt__level_t *level, size_t change)
{
    for (; level != NULL; level = level->up) {
        size_t before = memrt__fetch_add_relaxed(&level->gauges, change);
        memrt__raise_release(&level->most_gauges, before + change);
    }
}

/// Levels know of a gauge before it hides anything from them.
static void stop_resting(memrt__shard_t *shard, memrt__account_t *account)
{
    if (memrt__gauge_is_at_rest(shard)) {
        count_gauges(account->policy, 1);
        count_gauges(account->scope, 1);
        memrt__store_relaxed(&shard->low, shard->told - (size_t)MEMRT__GAUGE_FALL);
    }
}

/// Meanwhile the gauge shows no rise, whatever it was told. The releases are partners of the
/// acquire loads of who reads a gauge: when it shows none, the peak has it. A fall is counted when
/// the levels know of it, and before the gauge can rise again.
static void tell_all(memrt__shard_t *shard, memrt__account_t *account)
{
    size_t net = memrt__shard_net(shard);
    size_t change = net - shard->told, rise = shard->high - shard->told;
    keep_peak(account->policy, rise);
    keep_peak(account->scope, rise);
    memrt__store_release(&shard->high, MEMRT__GAUGE_TELLS);
    tell(account->policy, change, rise);
    tell(account->scope, change, rise);
    memrt__own_add_release(&shard->falls, (ptrdiff_t)change < 0);
    memrt__store_release(&shard->told, net);
    memrt__store_release(&shard->high, net);
}

/// Where one gauge hides something and another told, the one alone is no proof of the peak.
static void admit_others(memrt__level_t *level)
{
    for (; level != NULL; level = level->up) {
        if (memrt__load_relaxed(&level->gauges) != 0) {
            memrt__store_relaxed(&level->past_gauges, 1);
        }
    }
}

static void (*to_call)(void); /* relaxed; who takes it out calls it */

void memrt__gauge_call_once(void (*call)(void))
{
    memrt__store_relaxed((size_t *)&to_call, (size_t)call);
}

static void call_once(void)
{
    size_t call = memrt__load_relaxed((const size_t *)&to_call);
    if (MEMRT__UNLIKELY(call != 0) && memrt__cas_relaxed((size_t *)&to_call, call, 0)) {
        ((void (*)(void))call)();
    }
}

static bool tells_every_change(void)
{
    return memrt__load_relaxed(&memrt__options.exact_peak) != 0;
}

void memrt__gauge_tell(memrt__shard_t *shard, memrt__account_t *account)
{
    call_once();
    if (tells_every_change()) {
        memrt__gauge_rest(shard, account);
        admit_others(account->policy);
        admit_others(account->scope);
        return;
    }
    stop_resting(shard, account);
    tell_all(shard, account);
    memrt__store_relaxed(&shard->low, shard->told - (size_t)MEMRT__GAUGE_FALL);
}

void memrt__gauge_rest(memrt__shard_t *shard, memrt__account_t *account)
{
    bool rested = memrt__gauge_is_at_rest(shard);
    tell_all(shard, account);
    memrt__store_relaxed(&shard->low, shard->told);
    if (!rested) {
        count_gauges(account->policy, (size_t)-1);
        count_gauges(account->scope, (size_t)-1);
    }
}

/// Release, partner: the acquire load of who reads a gauge, and then the sums.
void memrt__gauge_rose(memrt__shard_t *shard, memrt__account_t *account)
{
    size_t net = memrt__shard_net(shard);
    bool exact = tells_every_change();
    if (!exact) {
        stop_resting(shard, account);
    }
    memrt__store_release(&shard->high, net);
    if (exact || (ptrdiff_t)(net - shard->told) > MEMRT__GAUGE_RISE) {
        memrt__gauge_tell(shard, account);
    }
}

static void tell_past_gauges(memrt__level_t *level, size_t bytes)
{
    tell(level, bytes, bytes);
    for (; level != NULL; level = level->up) {
        memrt__store_relaxed(&level->past_gauges, 1);
    }
}

void memrt__account_add_shared(memrt__account_t *account, size_t bytes)
{
    tell_past_gauges(account->policy, bytes);
    tell_past_gauges(account->scope, bytes);
    memrt__fetch_add_release(&account->shared->falls, (ptrdiff_t)bytes < 0);
}

bool memrt__account_is_in(const memrt__account_t *account, const memrt__level_t *level)
{
    const memrt__level_t *at = account->scope;
    while (at != NULL && at != level) {
        at = at->up;
    }
    return at != NULL || account->policy == level || level == &memrt__process;
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
