#ifndef MEMRT_STATS_SHARD_SUMS_H
#define MEMRT_STATS_SHARD_SUMS_H

#include "runtime/stats/tally.h"

/// Sums over shards. A caller adds the counters of frees before the counters of allocations, so
/// that other threads may count meanwhile.

/// Add the counters of frees, the counters of allocations, or the allocations by size of a shard.
void memrt__shard_sums_add_out(const memrt__shard_t *shard, memrt__shard_t *sum);
void memrt__shard_sums_add_in(const memrt__shard_t *shard, memrt__shard_t *sum);
void memrt__shard_sums_add_sizes(const memrt__shard_t *shard, memrt__shard_t *sum);

typedef void (*memrt__shard_add_fn)(const memrt__shard_t *shard, memrt__shard_t *sum);

/// Add the shards of all threads, and the shared shard, which counts for threads without a record.
/// A shared shard has no gauge.
void memrt__shard_sums_add_account(const memrt__account_t *account, memrt__shard_add_fn add,
                                   memrt__shard_t *sum);

/// Return the sum of a counter over all kinds.
size_t memrt__shard_sums_kinds(const size_t *by_kind);

#endif
