#ifndef MEMRT_STATS_GAUGES_H
#define MEMRT_STATS_GAUGES_H

#include <stdint.h>

#include "runtime/os/os.h"
#include "runtime/stats/tally.h"

/// Gauges of all threads: bring gauges to rest, and find rises. A gauge is a rise of bytes in use
/// that a shard has not yet reported to its aggregates.

/// Bring gauges to rest: all gauges of the calling thread and of records that no thread uses.
void memrt__stats_rest_gauges(void);

/// Register the shards of thread records: gauges come to rest when threads end. Called once, at the
/// start of the runtime.
void memrt__gauges_start(void);

/// Wait until all gauges of other threads are at rest, for MEMRT__STATS_PATIENCE at most. A thread
/// brings its gauges to rest when it next frees a block, or ends.
void memrt__stats_await_rest(void);
#define MEMRT__STATS_PATIENCE (50 * MEMRT__MS)

/// Bring the gauges of one account to rest, as memrt__stats_rest_gauges(). Under the lock of rank
/// THREADS.
void memrt__gauges_rest_account(memrt__account_t *account);

/// Mark an aggregate as having several gauges if a gauge of another thread shows an earlier rise,
/// or reported more than its bytes in use. Only the owner of a gauge can bring the gauge to rest.
void memrt__gauges_mark_rises(memrt__account_t *account, memrt__level_t *level);

#endif
