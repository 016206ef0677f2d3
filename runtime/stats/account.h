#ifndef MEMRT_STATS_ACCOUNT_H
#define MEMRT_STATS_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/compiler.h"
#include "runtime/stats/level.h"
#include "runtime/thread/shard_layout.h"

/// Account: the counters of one policy, or of one policy in one scope. Each thread counts in its
/// own shard of the account. This file has the data that all threads share, and the list of
/// accounts.
///
/// Invariant: the list contains exactly the accounts of the policies in the policy table. A figure
/// of an aggregate is a sum over the accounts of the list that belong to the aggregate, plus the
/// figures of retired accounts.

/// Origin of the blocks of an account: this process, or an ancestor before a fork.
typedef enum memrt__origin {
    MEMRT__OWN,
    MEMRT__FORK_ACCOUNT,
    MEMRT__MIXED, ///< both: no memory or free index for a separate account at the fork
    MEMRT__ORIGINS
} memrt__origin_t;

typedef struct memrt__account {
    uint32_t index;              ///< fixed; index of the account's shard in each thread
    memrt__shard_t *shared;      ///< fixed; shard of threads that could not get a record; counters
                                 ///< change by atomic adds, and only on the slow path
    memrt__level_t *policy;      ///< fixed; aggregate of the policy, directly inside the process
    memrt__level_t *scope;       ///< fixed; aggregate of the innermost scope; NULL: no scope
    memrt__origin_t origin;      ///< written by a fork
    struct memrt__account *next; ///< under the lock of rank THREADS; next in the list
} memrt__account_t;

/// Return whether an account belongs to an aggregate: the policy of the account, the scope, an
/// outer scope, or the process.
bool memrt__account_is_in(const memrt__account_t *account, const memrt__level_t *level);

/// Add an account to the list. The fixed fields are set. Takes the lock of rank THREADS.
void memrt__account_enter(memrt__account_t *account);

/// Return the first account of the list, or NULL; `next` links the rest. Under the lock of rank
/// THREADS.
memrt__account_t *memrt__account_first(void);

/// Remove an account from the list. Under the lock of rank THREADS.
void memrt__account_leave(memrt__account_t *account);

#endif
