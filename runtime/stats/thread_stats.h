#ifndef MEMRT_STATS_THREAD_STATS_H
#define MEMRT_STATS_THREAD_STATS_H

#include <memrt/observe/stats.h>

#include "runtime/thread/thread.h"

/// Statistics of threads: the shards of a thread record, less the counts of earlier owners of the
/// record.

/// Register the usage slot of thread records: a new owner of a record starts at zero. Called once,
/// at the start of the runtime.
void memrt__thread_stats_start(void);

/// Keep the counts of a shard that is about to be cleared. Under the lock of rank THREADS.
void memrt__thread_stats_retire(memrt__thread_t *thread, const memrt__shard_t *shard);

/// Return whether an array of statistics exists, if it has elements, and has all sizes set.
bool memrt__thread_stats_have_sizes(const memrt_thread_stats_t *out, size_t count);

/// Fill at most `room` elements, and return the number of threads. Under the lock of rank THREADS.
size_t memrt__thread_stats_read_locked(memrt_thread_stats_t *out, size_t room);

/// Implement memrt_api_t.threads.
memrt_status_t memrt__thread_stats_read(memrt_thread_stats_t *out, size_t *count) MEMRT_MUST_CHECK;

#endif
