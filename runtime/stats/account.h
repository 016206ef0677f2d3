#ifndef MEMRT_STATS_ACCOUNT_H
#define MEMRT_STATS_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/compiler.h"
#include "runtime/stats/level.h"
#include "runtime/thread/shard_layout.h"

/// Accounts: what all threads share of the counters of a policy, or of a policy in a scope.

/// Origin of the blocks of an account: this process, or an ancestor before a fork.
typedef enum memrt__origin {
    MEMRT__OWN,
    MEMRT__FORK_ACCOUNT,
    MEMRT__MIXED, ///< both: no memory or free index for a separate account at the fork
    MEMRT__ORIGINS
} memrt__origin_t;

/// Data of an account that all threads share.
typedef struct memrt__account {
    uint32_t index;              ///< fixed; index of the account's shard in each thread
    memrt__shard_t *shared;      ///< atomic adds; counters for threads that could not get a record;
                                 ///< always as on the slow path
    memrt__level_t *policy;      ///< fixed; next level `up` is the process
    memrt__level_t *scope;       ///< fixed; scope of the allocations; NULL: no scope
    memrt__origin_t origin;      ///< written by a fork
    struct memrt__account *next; ///< under the lock of rank THREADS
} memrt__account_t;

/// Return whether an account is part of an aggregate, directly or through an inner aggregate.
bool memrt__account_is_in(const memrt__account_t *account, const memrt__level_t *level);

/// Add `account`, with its index and shared shard set, to the accounts that sums include.
void memrt__account_enter(memrt__account_t *account);

/// Return the first entered account; `next` links the rest. Under the lock of rank THREADS.
memrt__account_t *memrt__account_first(void);

/// Remove an account from the list. Under the lock of rank THREADS.
void memrt__account_leave(memrt__account_t *account);

#endif
