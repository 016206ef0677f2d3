#ifndef MEMRT_STATS_SHARD_H
#define MEMRT_STATS_SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/meminfo.h>
#include <memrt/observe/stats.h>

#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/base/compiler.h"
#include "runtime/base/size.h"
#include "runtime/thread/shard_layout.h"

/// Per-thread counters. Each thread has one shard for every account (policy) that the thread uses.
/// Only the owning thread writes a shard, so counting never contends. A reader adds up the shards.
///
/// A gauge is the part of a shard that tracks its bytes in use since the last report. A gauge
/// reports its changes to the aggregates of the account, for their sums and peaks.
///
/// Invariants over all shards of one account, when no thread is inside memrt:
///     live blocks   == sum(made) - sum(freed)
///     live bytes    == sum(bytes_in) - sum(bytes_out)
///                   == sum(reported) + sum(bytes_in - bytes_out - reported)

/// Bytes by which the header of a tiny block is smaller than MEMRT_HEADER_SIZE.
#define MEMRT__TINY_SAVES 48u

/// Aggregate: a sum over accounts. A policy, a scope with its inner scopes, and the process are
/// aggregates. Each account is part of several aggregates, and its gauges report to all of them.
typedef struct memrt__level {
    struct memrt__level *up; ///< fixed; enclosing aggregate
    size_t flushed;          ///< any thread, release add; bytes in use, as reported by gauges
    size_t peak;             ///< any thread, release raise; maximum of `flushed` plus a rise
    size_t gauges;           ///< any thread, relaxed add; gauges not at rest now
    size_t most_gauges;      ///< any thread, raise; maximum of `gauges` since the peak started
    size_t past_gauges;      ///< any thread, relaxed; not 0: a single gauge does not prove the peak
    memrt__shard_t past;     ///< under the lock of rank THREADS; counts of retired accounts
    size_t sizes[MEMRT_SIZE_BINS]; ///< under the same lock; their allocations by size
} memrt__level_t;

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
    memrt__shard_t *shared;      ///< atomic adds; counters for threads that could not get a record
    memrt__level_t *policy;      ///< fixed; next level `up` is the process
    memrt__level_t *scope;       ///< fixed; scope of the allocations; NULL: no scope
    memrt__origin_t origin;      ///< written by a fork
    struct memrt__account *next; ///< under the lock of rank THREADS
} memrt__account_t;

/// Bytes that a gauge may rise or fall before a report. A rise of more than 64 KiB is reported, and
/// a fall of more than 960 KiB. A fall is often made up for at once, so its limit is larger. The
/// sum of both limits is the contribution of one gauge to the error of the peak.
#define MEMRT__GAUGE_RISE ((ptrdiff_t)64 << 10)
#define MEMRT__GAUGE_FALL (MEMRT__GAUGE_ERROR - MEMRT__GAUGE_RISE)
#define MEMRT__GAUGE_ERROR ((ptrdiff_t)1 << 20)

/// Value of `high` while a gauge reports: below any real value.
#define MEMRT__GAUGE_TELLS ((size_t)(PTRDIFF_MIN / 2))

/// Aggregate of all accounts.
extern memrt__level_t memrt__process;

/// Return whether an account is part of an aggregate, directly or through an inner aggregate.
bool memrt__account_is_in(const memrt__account_t *account, const memrt__level_t *level);

/// Add `account`, with its index and shared shard set, to the accounts that sums include.
void memrt__account_enter(memrt__account_t *account);

/// Return the first entered account; `next` links the rest. Under the lock of rank THREADS.
memrt__account_t *memrt__account_first(void);

/// Remove an account from the list. Under the lock of rank THREADS.
void memrt__account_leave(memrt__account_t *account);

/// Add to an "in" or "out" word of a shard of the calling thread. In a build with MEMRT_COUNTERS 0,
/// which exists to measure the cost of counting, both functions do nothing.
static inline void memrt__count_in(size_t *word, size_t value)
{
    if (MEMRT_COUNTERS) {
        memrt__own_add(word, value);
    }
}
static inline void memrt__count_out(size_t *word, size_t value)
{
    if (MEMRT_COUNTERS) {
        memrt__own_add_release(word, value);
    }
}

/// Return the bytes in use of a shard of the calling thread, as a signed value. Frees of blocks
/// that another thread allocated make the value negative.
static inline size_t memrt__shard_net(const memrt__shard_t *shard)
{
    return memrt__own_load(&shard->bytes_in) - memrt__own_load(&shard->bytes_out);
}

/// Return the histogram bin of a size: its number of significant bits, at most the last bin.
static inline unsigned memrt__size_bin(size_t size)
{
    unsigned bits = size == 0 ? 0 : memrt__floor_log2(size) + 1;
    return bits < MEMRT_SIZE_BINS ? bits : MEMRT_SIZE_BINS - 1;
}

/// Count an allocation of `size` bytes by size in an own shard, if the shard has a histogram.
static inline void memrt__count_size(memrt__shard_t *shard, size_t size)
{
    if (MEMRT__UNLIKELY(!memrt__word_equals((const size_t *)&shard->sizes, 0))) {
        memrt__count_in(&shard->sizes[memrt__size_bin(size)], 1);
    }
}

/// Count an allocation of 1 to 2^(MEMRT_SIZE_BINS - 2) bytes by size, as memrt__count_size().
static MEMRT__INLINE void memrt__count_usual_size(memrt__shard_t *shard, size_t size)
{
    MEMRT__ASSERT(size != 0 && memrt__floor_log2(size) + 1 < MEMRT_SIZE_BINS);
    if (MEMRT__UNLIKELY(!memrt__word_equals((const size_t *)&shard->sizes, 0))) {
        memrt__count_in(&shard->sizes[memrt__floor_log2(size) + 1], 1);
    }
}

/// Return whether `shard` can count for `account`. A shard may come from an earlier account with
/// the same index and lack the histogram that an account inside a scope needs.
static inline bool memrt__shard_serves(const memrt__shard_t *shard, const memrt__account_t *account)
{
    return shard != NULL && (account->scope == NULL || shard->sizes != NULL || !MEMRT_COUNTERS);
}

/// Count `bytes` more in use, in a shard of the calling thread, if that is no new maximum, or if
/// the gauge climbs. False: nothing changed; memrt__shard_grow() counts the bytes.
static MEMRT__INLINE bool memrt__shard_grow_fast(memrt__shard_t *shard, size_t bytes)
{
    if (!MEMRT_COUNTERS) { /* only the shard of closed homes has a negative value */
        return (ptrdiff_t)memrt__own_load(&shard->rise_left) >= 0;
    }
    if (MEMRT__UNLIKELY(!memrt__own_take(&shard->rise_left, bytes))) {
        return false;
    }
    memrt__own_add(&shard->bytes_in, bytes);
    return true;
}

/// Count `bytes` less in use, in a shard of the calling thread, unless the gauge climbs or must be
/// compared with `low`. False: nothing changed; memrt__shard_shrink() counts the bytes.
static MEMRT__INLINE bool memrt__shard_shrink_fast(memrt__shard_t *shard, size_t bytes)
{
    if (MEMRT_COUNTERS) {
        if (MEMRT__UNLIKELY(!memrt__own_take(&shard->fall_left, bytes))) {
            return false;
        }
        memrt__own_add(&shard->rise_left, bytes);
        memrt__own_add_release(&shard->bytes_out, bytes);
    }
    return true;
}

/// Slow paths of memrt__shard_grow() and memrt__shard_shrink().
MEMRT__COLD void memrt__gauge_grow(memrt__shard_t *shard, memrt__account_t *account, size_t bytes);
MEMRT__COLD void memrt__gauge_shrink(memrt__shard_t *shard, memrt__account_t *account,
                                     size_t bytes);

/// Report everything to the aggregates. A single gauge then proves no peak if others are active.
MEMRT__COLD void memrt__gauge_report(memrt__shard_t *shard, memrt__account_t *account);

/// Have `call` run once, on the next thread that reports a change to the aggregates. That thread
/// may hold any lock. NULL cancels a call that has not run yet.
void memrt__gauge_call_once(void (*call)(void));

/// Return whether an own gauge is at rest: the aggregates know everything the gauge saw.
static inline bool memrt__gauge_is_at_rest(const memrt__shard_t *shard)
{
    return memrt__own_load(&shard->low) == memrt__own_load(&shard->reported);
}

/// Return whether a gauge of another thread is at rest. Only a hint: the owner may be writing.
static inline bool memrt__gauge_seems_at_rest(const memrt__shard_t *shard)
{
    return memrt__load_relaxed(&shard->low) == memrt__load_relaxed(&shard->reported);
}

/// A climb: the owner allocates without a free in between. A new maximum starts a climb of at most
/// MEMRT__GAUGE_RISE above the last report, and the next free or report ends the climb. During a
/// climb, the bytes in use are the maximum, so that `high` needs no update for each allocation.
static inline bool memrt__gauge_climbs(const memrt__shard_t *shard)
{
    return memrt__own_load(&shard->climbs) % 2 != 0;
}

/// End the climb of an own gauge, if any: record the bytes in use as the maximum.
void memrt__gauge_end_climb(memrt__shard_t *shard);

/// Set `rise_left` and `fall_left` after a change of `high`, `low` or the bytes in use. The gauge
/// must not climb.
static inline void memrt__gauge_measure(memrt__shard_t *shard)
{
    if (MEMRT_COUNTERS) {
        MEMRT__ASSERT(!memrt__gauge_climbs(shard));
        size_t net = memrt__shard_net(shard);
        shard->rise_left = shard->high - net;
        shard->fall_left = net - shard->low;
    }
}

/// Report everything to the aggregates and bring the gauge to rest until its next change. Only the
/// owner of the gauge may call this function, or any thread while the gauge has no owner.
void memrt__gauge_rest(memrt__shard_t *shard, memrt__account_t *account);

/// Return the signed rise of a gauge since its last report. Threads: any thread. If the owner
/// reports meanwhile, the result is too low, and the missing rise is already in the peak.
size_t memrt__gauge_rise(const memrt__shard_t *shard);

/// Count `bytes` more in use, in a shard of the calling thread.
static inline void memrt__shard_grow(memrt__shard_t *shard, memrt__account_t *account, size_t bytes)
{
    if (MEMRT__UNLIKELY(!memrt__shard_grow_fast(shard, bytes))) {
        memrt__gauge_grow(shard, account, bytes);
    }
}

/// Count `bytes` less in use, in a shard of the calling thread.
static inline void memrt__shard_shrink(memrt__shard_t *shard, memrt__account_t *account,
                                       size_t bytes)
{
    if (MEMRT__UNLIKELY(!memrt__shard_shrink_fast(shard, bytes))) {
        memrt__gauge_shrink(shard, account, bytes);
    }
}

#if MEMRT_DEBUG
/// Return whether the invariants of a shard hold. Only for a shard of the calling thread, or a
/// shard whose record no thread uses.
bool memrt__shard_is_valid(const memrt__shard_t *shard);
#endif

/// Report a change of `bytes`, signed, in the shared shard of an account to its aggregates. The
/// caller changes bytes_in or bytes_out itself. Shared shards have no gauge.
MEMRT__COLD void memrt__account_add_shared(memrt__account_t *account, size_t bytes);

#endif
