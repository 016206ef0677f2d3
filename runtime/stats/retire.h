#ifndef MEMRT_STATS_RETIRE_H
#define MEMRT_STATS_RETIRE_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/stats/tally.h"

/// Return whether the account has no live block. A result of true is final once allocation from the
/// account is impossible. Returns false in a build without counters.
bool memrt__stats_is_idle(const memrt__account_t *account);

/// Number of shards of threads that memrt__stats_is_idle() has read. Each call reads a shard twice.
/// Written under the lock of rank THREADS.
extern size_t memrt__stats_idle_readings;

/// Retire an idle account that is no longer reachable. The counts move to `past` of the aggregates,
/// and the index can serve a new account that starts at zero.
void memrt__stats_retire(memrt__account_t *account);

#endif
