#include "runtime/stats/allowance.h"

#include <stdbool.h>

#include "runtime/base/atomics.h"
#include "runtime/base/size.h"
#include "runtime/config/options.h"

size_t memrt__allowance_choose(const memrt__shard_t *shard, const memrt__account_t *account)
{
    size_t mode = memrt__load_relaxed(&memrt__options.peak_mode);
    if (MEMRT__LIKELY(mode == MEMRT__PEAK_BOUNDED)) {
        return (size_t)MEMRT__GAUGE_ERROR;
    }
    if (mode == MEMRT__PEAK_EXACT) {
        return 0;
    }
    size_t of_policy = memrt__level_close_allowance(account->policy, shard->allowance);
    size_t of_scope = memrt__level_close_allowance(account->scope, shard->allowance);
    return memrt__size_min(memrt__size_min(of_policy, of_scope), (size_t)MEMRT__GAUGE_ERROR);
}

void memrt__allowance_raise(memrt__shard_t *shard, memrt__account_t *account, size_t allowance)
{
    size_t more = allowance - shard->allowance;
    bool close = memrt__load_relaxed(&memrt__options.peak_mode) == MEMRT__PEAK_CLOSE;
    if (!memrt__level_hide(account->policy, more, close)) {
        return;
    }
    if (!memrt__level_hide(account->scope, more, close)) {
        memrt__level_unhide(account->policy, more);
        return;
    }
    shard->allowance = allowance;
}

void memrt__allowance_lower(memrt__shard_t *shard, memrt__account_t *account, size_t allowance)
{
    size_t less = shard->allowance - allowance;
    if (less != 0) {
        shard->allowance = allowance;
        memrt__level_unhide(account->policy, less);
        memrt__level_unhide(account->scope, less);
    }
}
