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

/// Have `wake` called after a promise above a soft limit, and after a soft limit was set. Before
/// the first limit is set.
void memrt__limit_start(void (*wake)(void));

/// Call the function of memrt__limit_start().
void memrt__limit_wake(void);

/// Return the aggregate of a policy, of a scope, or of the process if both are NULL.
memrt__level_t *memrt__limit_level(const memrt_policy_t *policy, const memrt_scope_t *scope);

/// Change a limit or soft limit from `before` to `bytes` by `set`, and have the threads that
/// allocated before follow soon.
memrt_status_t memrt__limit_change(memrt__level_t *level, size_t before, size_t bytes,
                                   void (*set)(memrt__level_t *level, size_t bytes));

/// Return the memory that the system allows the process, or SIZE_MAX.
size_t memrt__limit_of_system(void);

/// Return whether an option value is "auto" or a percentage.
bool memrt__limit_is_relative(size_t option);

/// Return the bytes of an option value that is "auto" or a percentage, if the system allows
/// `allowed` bytes.
size_t memrt__limit_choose(size_t option, size_t allowed);

/// Set the limit of the process to the option's value. "auto" and percentages refer to the present
/// limit of the system. Failure: MEMRT_ENOTSUP in a build without counters.
memrt_status_t memrt__limit_follow_option(void) MEMRT_MUST_CHECK;

/// Return true for a process limit or soft limit of "auto" or a percentage.
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
