#ifndef MEMRT_STATS_STATS_H
#define MEMRT_STATS_STATS_H

#include <memrt/observe/stats.h>

#include "runtime/stats/tally.h"

/// Reading of statistics. The functions allocate no memory. All take the lock of rank THREADS,
/// except memrt__stats_read_locked().

/// Fill every field of `out`, except `struct_size` and `cached`.
void memrt__stats_read(const memrt__level_t *level, memrt_stats_t *out);

/// Do the same. The caller holds the lock of rank THREADS.
void memrt__stats_read_locked(const memrt__level_t *level, memrt_stats_t *out);

/// Fill the counts of blocks by size in `out`.
void memrt__stats_sizes(const memrt__level_t *level, memrt_sizes_t *out);

/// Restart the peak from the bytes that are live now.
void memrt__stats_reset_peak(memrt__level_t *level);

/// Return whether all additions and removals of the account cancel out in every counter. A forked
/// child then has inherited no block of the account.
bool memrt__stats_is_settled(const memrt__account_t *account);

/// In a forked child with a single thread: recompute all aggregates from the shards. Other threads
/// of the parent may have been in the middle of a report at the fork.
void memrt__stats_forked(void);

/// Return the number of forks between the process that loaded memrt and this process.
uint64_t memrt__stats_generation(void);

#if MEMRT_DEBUG
/// Return whether the invariants of all accounts, their aggregates and shards hold. Figures that
/// other threads may be changing are left out. Takes the lock of rank THREADS.
bool memrt__stats_is_valid(void);
#endif

#endif
