#ifndef MEMRT_POLICY_SOFT_LIMIT_H
#define MEMRT_POLICY_SOFT_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/process/limit.h>

#include "runtime/base/atomics.h"
#include "runtime/stats/level.h"

/// Soft limits: free memory when the use of a process, policy or scope rises above a bound, without
/// refusals. Promises of stats/promise.h note the rise, and the pressure thread handles the rise.

/// Number of soft limits that were exceeded at the last memrt__soft_limits_handle(). Relaxed.
extern size_t memrt__soft_limits_above;

/// Implementation of memrt_api_t.limit_set_soft.
memrt_status_t memrt__soft_limit_set(memrt_policy_t *policy, memrt_scope_t *scope,
                                     uint64_t bytes) MEMRT_MUST_CHECK;

/// Set the soft limit of the process to the option's value. "auto" is 90 % of the limit of the
/// process, or of the limit that "auto" gives. Percentages refer to the present limit of the
/// system. Both stay within the limit of the process.
/// Failure: MEMRT_EINVAL for a number above the limit; MEMRT_ENOTSUP in a build without counters.
/// The soft limit and the option are then unchanged, or without a soft limit.
memrt_status_t memrt__soft_limit_follow_option(void) MEMRT_MUST_CHECK;

/// Adapt a soft limit of "auto" or a percentage to a changed limit of the system or the process.
/// Takes the lock of rank OPTIONS.
void memrt__soft_limit_follow(void);

static inline bool memrt__soft_limit_exists(void)
{
    return memrt__load_relaxed(&memrt__soft_limits) != 0;
}

/// Handle the rises above soft limits since the last call: release cached memory, and run reclaim
/// callbacks. Returns true if a use is still too high, so that pressure callbacks must run. By one
/// thread at a time, without locks.
bool memrt__soft_limits_handle(void);

#endif
