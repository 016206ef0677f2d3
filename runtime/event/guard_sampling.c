#include "runtime/event/guard_sampling.h"

#include <math.h>

#include "runtime/alloc/guard/guard_pages.h"
#include "runtime/base/slow_path.h"
#include "runtime/observe/tracking.h"
#include "runtime/policy/home.h"

size_t memrt__guard_mean;

bool memrt__guard_sampling_set(size_t mean)
{
    if (mean != 0 && !memrt__guard_pages_start()) {
        return false;
    }
    memrt__slow_path_set(MEMRT__SLOW_GUARD, memrt__guard_pages_are_close(mean));
    memrt__guard_mean = mean;
    return true;
}

bool memrt__guard_sampling_start(void)
{
    size_t mean = memrt__options.guard_sample;
    return mean == 0 || (!memrt__options.check && memrt__guard_sampling_set(mean));
}

static size_t get_mean(const memrt_policy_t *policy)
{
    size_t own = memrt__load_relaxed(&policy->base->limits.guard_sample);
    return own == MEMRT__INHERIT ? memrt__guard_mean : own;
}

/// Draw the distance to a sample point, in bytes. Never 0.
static size_t draw_distance(size_t mean)
{
    return (size_t)fmin(-log(memrt__draw_uniform()) * (double)mean, 0x1p60) + 1;
}

/// Return whether the allocated bytes of a shard, with `size` more, are beyond its sample point.
static bool is_beyond_point(memrt__shard_t *shard, size_t size, size_t mean)
{
    if (shard->guard_mean != mean) { /* the first block of the account, or the mean has changed */
        shard->guard_mean = mean;
        shard->guard_point = memrt__shard_own_in(shard) + draw_distance(mean);
    }
    return memrt__shard_own_in(shard) + size > shard->guard_point;
}

bool memrt__guard_pick(const memrt_policy_t *policy, size_t size)
{
    size_t mean = get_mean(policy);
    if (mean <= 1) {
        return mean == 1;
    }
    const memrt__thread_t *self = memrt__thread_or_null();
    memrt__shard_t *shard =
        self == NULL || !MEMRT_COUNTERS ? NULL : memrt__thread_shard(self, policy->account.index);
    if (shard == NULL) {
        return size >= draw_distance(mean);
    }
    if (!is_beyond_point(shard, size, mean)) {
        return false;
    }
    shard->guard_point = memrt__shard_own_in(shard) + size + draw_distance(mean);
    return true;
}

void memrt__guard_follow(const memrt__tally_t *tally)
{
    size_t mean = get_mean(memrt__policies[tally->account->index]);
    memrt__thread_t *self = memrt__thread_or_null();
    if (mean > 1 && tally->own && self != NULL && is_beyond_point(tally->shard, 0, mean)) {
        memrt__home_clear_all(self);
    }
}
