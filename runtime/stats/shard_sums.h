#ifndef MEMRT_STATS_SHARD_SUMS_H
#define MEMRT_STATS_SHARD_SUMS_H

#include "runtime/stats/tally.h"

/// Sums over shards. A caller adds the counters of frees before the counters of allocations, so
/// that other threads may count meanwhile.

/// Add the counters of frees, or the counters of allocations, of a shard.
void memrt__shard_sums_add_out(const memrt__shard_t *shard, memrt__sums_t *sum);
void memrt__shard_sums_add_in(const memrt__shard_t *shard, memrt__sums_t *sum);

typedef void (*memrt__shard_add_fn)(const memrt__shard_t *shard, memrt__sums_t *sum);

/// Add the shards of all threads, and the shared shard, which counts for threads without a record.
/// A shared shard has no gauge.
void memrt__shard_sums_add_account(const memrt__account_t *account, memrt__shard_add_fn add,
                                   memrt__sums_t *sum);

/// Add other sums.
void memrt__shard_sums_add(const memrt__sums_t *other, memrt__sums_t *sum);

/// Add the freed or the allocated blocks of a shard by size, MEMRT_SIZE_BINS counts. Blocks without
/// data have no size.
void memrt__shard_sums_add_freed_sizes(const memrt__shard_t *shard, size_t *sizes);
void memrt__shard_sums_add_made_sizes(const memrt__shard_t *shard, size_t *sizes);

typedef void (*memrt__shard_add_sizes_fn)(const memrt__shard_t *shard, size_t *sizes);

/// Add the blocks of the shards of all threads, and of the shared shard, by size.
void memrt__shard_sums_add_account_sizes(const memrt__account_t *account,
                                         memrt__shard_add_sizes_fn add, size_t *sizes);

/// Return the sum of a counter over all kinds.
size_t memrt__shard_sums_kinds(const size_t *by_kind);

#endif
