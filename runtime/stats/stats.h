#ifndef MEMRT_STATS_STATS_H
#define MEMRT_STATS_STATS_H

#include <memrt/stats.h>

#include "runtime/stats/thread.h"

/// Reading the accounts. Takes the lock of rank THREADS; allocates nothing.

/// Fill every field of `out` but `struct_size` and `cached`.
void memrt__stats_read(const memrt__level_t *level, memrt_stats_t *out);

/// Births by size of accounts that count them, into MEMRT_SIZE_BINS words.
void memrt__stats_sizes(const memrt__level_t *level, uint64_t *out);

/// Have the gauges of the calling thread, and those that no thread has, tell all and rest.
void memrt__stats_rest_gauges(void);

/// Let the peak start again from what is live now.
void memrt__stats_reset_peak(memrt__level_t *level);

/// Whether nothing of the account is live. Final once nobody can allocate from it any more. Without
/// counters nobody knows, and the answer is no.
bool memrt__stats_is_idle(const memrt__account_t *account);

/// Whether what came in went out by every count, so that nothing a fork copied is on the account.
bool memrt__stats_is_settled(const memrt__account_t *account);

/// In a forked child, while it has one thread: what accounts add up to is told anew, because other
/// threads may have been in the middle of telling.
void memrt__stats_forked(void);

/// Move the counts of an idle account that nobody can reach any more to the past of its levels, so
/// that its index can serve a new account from zero.
void memrt__stats_retire(memrt__account_t *account);

#endif
