#ifndef MEMRT_POLICY_MEMORY_LIMIT_H
#define MEMRT_POLICY_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/process/limit.h>

#include "runtime/policy/policy_table.h"
#include "runtime/stats/tally.h"

/// Limits of live bytes: of the process, of a policy, of a scope. Promises of stats/promise.h keep
/// the limits. Before a block is refused, this module takes back what gauges and caches hold.

/// Implementations of the memrt_api_t functions with the same names.
memrt_status_t memrt__limit_set(memrt_policy_t *policy, memrt_scope_t *scope,
                                uint64_t bytes) MEMRT_MUST_CHECK;
memrt_status_t memrt__limit_read(const memrt_policy_t *policy, const memrt_scope_t *scope,
                                 memrt_limit_t *out) MEMRT_MUST_CHECK;

/// Set the limit of the process to the option's value. "auto" and percentages refer to the present
/// limit of the system. Failure: MEMRT_ENOTSUP in a build without counters.
memrt_status_t memrt__limit_follow_option(void) MEMRT_MUST_CHECK;

/// Return true for a process limit of "auto" or a percentage.
bool memrt__limit_follows_system(void);

/// Adapt a process limit of "auto" or a percentage to a changed system limit. Takes the lock of
/// rank OPTIONS.
void memrt__limit_follow_system(void);

static inline bool memrt__limit_exists(void)
{
    return MEMRT_COUNTERS && MEMRT__UNLIKELY(memrt__load_relaxed(&memrt__limited_levels) != 0);
}

MEMRT__COLD bool memrt__limit_ensure_slow(memrt__shard_t *shard, memrt__account_t *account,
                                          size_t bytes);
MEMRT__COLD bool memrt__limit_admit_slow(memrt__account_t *account, size_t bytes);
MEMRT__COLD void memrt__limit_drop_slow(memrt__account_t *account, size_t bytes);

/// Make sure that the calling thread may count `bytes` more in its own shard, if it does so before
/// any other use of its caches. False: a limit has less room at the moment; memrt__limit_admit()
/// tries harder.
static inline bool memrt__limit_ensure(memrt__shard_t *shard, memrt__account_t *account,
                                       size_t bytes)
{
    return !memrt__limit_exists() || memrt__limit_ensure_slow(shard, account, bytes);
}

/// Admit a block of `bytes`, which is pending until memrt__tally_settle() or memrt__limit_drop().
/// Before a refusal, bring gauges to rest, and release cached memory if the process has a limit.
static inline bool memrt__limit_admit(memrt__account_t *account, size_t bytes)
{
    return !memrt__limit_exists() || memrt__limit_admit_slow(account, bytes);
}

/// Return whether all limits of an account have room for `bytes` at the moment, without promises.
MEMRT__COLD bool memrt__limit_has_room(const memrt__account_t *account, size_t bytes);

/// Drop an admitted block that is not counted after all.
static inline void memrt__limit_drop(memrt__account_t *account, size_t bytes)
{
    if (memrt__limit_exists()) {
        memrt__limit_drop_slow(account, bytes);
    }
}

#endif
