#include "runtime/stats/promise.h"

#include <stdint.h>

#include "runtime/base/atomics.h"
#include "runtime/base/size.h"

/// Return the signed bytes in use of an open shard.
static size_t get_net(const memrt__shard_t *shard)
{
    MEMRT__ASSERT(shard->sequence % 2 != 0);
    return shard->bytes_in - shard->bytes_out;
}

/// Promise in the aggregates of a policy and of a scope.
static bool promise(memrt__account_t *account, size_t bytes)
{
    if (!memrt__level_promise(account->policy, bytes)) {
        return false;
    }
    if (!memrt__level_promise(account->scope, bytes)) {
        memrt__level_end_promise(account->policy, bytes);
        return false;
    }
    if (memrt__load_relaxed(&memrt__soft_limits) != 0) {
        memrt__level_note_soft(account->policy);
        memrt__level_note_soft(account->scope);
    }
    return true;
}

static void end_promise(memrt__account_t *account, size_t bytes)
{
    memrt__level_end_promise(account->policy, bytes);
    memrt__level_end_promise(account->scope, bytes);
}

void memrt__promise_keep(memrt__shard_t *shard, memrt__account_t *account, size_t bytes)
{
    size_t rise = get_net(shard) - shard->reported;
    size_t kept = ((ptrdiff_t)rise > 0 ? rise : 0) + shard->pending + bytes;
    if (MEMRT__UNLIKELY(shard->promised > kept)) {
        end_promise(account, shard->promised - kept);
        shard->promised = kept;
    }
}

void memrt__promise_end_reported(memrt__shard_t *shard, memrt__account_t *account, size_t change)
{
    if (MEMRT__UNLIKELY(shard->promised != 0) && (ptrdiff_t)change > 0) {
        size_t ended = memrt__size_min(change, shard->promised - shard->pending);
        end_promise(account, ended);
        shard->promised -= ended;
    }
}

void memrt__promise_keep_fall(memrt__shard_t *shard, memrt__account_t *account, size_t bytes)
{
    memrt__level_keep_promise(account->policy, bytes);
    memrt__level_keep_promise(account->scope, bytes);
    shard->promised += bytes;
}

/// Return the bytes that a gauge of the account may hold unused; 0: no aggregate has a limit.
static size_t choose_quantum(const memrt__account_t *account)
{
    size_t limit = memrt__size_min(memrt__level_lowest_limit(account->policy),
                                   memrt__level_lowest_limit(account->scope));
    size_t share = memrt__size_min(limit / MEMRT__QUANTUM_SHARE, MEMRT__QUANTUM_MAX);
    return limit == SIZE_MAX ? 0 : memrt__size_max(share, 1);
}

void memrt__promise_follow_limits(memrt__shard_t *shard, memrt__account_t *account)
{
    size_t changes = memrt__load_acquire(&memrt__limit_changes);
    if (MEMRT__UNLIKELY(shard->limit_changes != changes)) {
        shard->quantum = choose_quantum(account);
        shard->limit_changes = changes;
    }
    memrt__promise_keep(shard, account, shard->quantum);
}

/// Return the signed rise above the bytes in use that the promises allow.
static size_t get_promised_rise(const memrt__shard_t *shard)
{
    return shard->reported + shard->promised - shard->pending - get_net(shard);
}

size_t memrt__promise_bound_rise(const memrt__shard_t *shard, size_t rise)
{
    size_t promised = get_promised_rise(shard);
    if ((ptrdiff_t)promised < 0) {
        return 0;
    }
    return memrt__size_min(rise, promised);
}

bool memrt__promise_rise(memrt__shard_t *shard, memrt__account_t *account, size_t bytes)
{
    size_t promised = get_promised_rise(shard);
    if (shard->quantum == 0 || (ptrdiff_t)(bytes - promised) <= 0) {
        return true;
    }
    size_t missing = bytes - promised;
    size_t ahead = memrt__size_min(shard->quantum, MEMRT__PROMISE_AHEAD);
    if (promise(account, missing + ahead)) {
        shard->promised += missing + ahead;
        return true;
    }
    if (promise(account, missing)) {
        shard->promised += missing;
        return true;
    }
    return false;
}

void memrt__promise_settle(memrt__shard_t *shard, size_t bytes)
{
    shard->pending -= memrt__size_min(shard->pending, bytes);
}

bool memrt__promise_shared(memrt__account_t *account, size_t bytes)
{
    if (memrt__load_relaxed(&memrt__limited_levels) == 0) {
        return true;
    }
    if (!promise(account, bytes)) {
        return false;
    }
    memrt__fetch_add_relaxed(&account->shared->promised, bytes);
    return true;
}

void memrt__promise_end_shared(memrt__account_t *account, size_t bytes)
{
    size_t *promised = &account->shared->promised, before, ended;
    do {
        before = memrt__load_relaxed(promised);
        ended = memrt__size_min(before, bytes);
    } while (ended != 0 && !memrt__cas_relaxed(promised, before, before - ended));
    if (ended != 0) {
        end_promise(account, ended);
    }
}

static void report_shared_change(memrt__level_t *level, size_t bytes)
{
    memrt__level_report(level, bytes, bytes);
    for (; level != NULL; level = level->up) {
        memrt__store_relaxed(&level->past_gauges, 1);
    }
}

void memrt__account_add_shared(memrt__account_t *account, size_t bytes)
{
    report_shared_change(account->policy, bytes);
    report_shared_change(account->scope, bytes);
    memrt__fetch_add_release(&account->shared->falls, (ptrdiff_t)bytes < 0);
    if ((ptrdiff_t)bytes > 0) {
        memrt__promise_end_shared(account, bytes);
    }
}
