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
#include "runtime/stats/account.h"
#include "runtime/stats/allowance.h"

/// Per-thread counters. Each thread has one shard for every account (policy) that the thread uses.
/// Only the owning thread writes a shard, so counting never contends. A reader adds up the shards.
///
/// A gauge is the part of a shard that tracks its bytes in use since the last report. A gauge
/// reports its changes to the aggregates of the account, for their sums and peaks.
///
/// Invariants over all shards of one account, when no thread is inside memrt:
///     live blocks   == sum(made) - sum(freed)
///     live bytes    == sum(bytes in) - sum(bytes out)
///                   == sum(reported) + sum(bytes in - bytes out - reported)

/// Bytes by which the header of a tiny block is smaller than MEMRT_HEADER_SIZE.
#define MEMRT__TINY_SAVES 48u

/// Value of `high` while a gauge reports: below any real value.
#define MEMRT__GAUGE_REPORTS ((size_t)(PTRDIFF_MIN / 2))

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

/// Shard that counts as on the slow path, for all threads: a shared shard.
#define MEMRT__SHARED_SHARD ((memrt__shard_t){.sequence = 1})

/// Return whether the owner of a shard of the calling thread is on the slow path.
static inline bool memrt__shard_is_open(const memrt__shard_t *shard)
{
    return memrt__own_load(&shard->sequence) % 2 != 0;
}

/// Return the allocated and the freed bytes of a shard of the calling thread.
static inline size_t memrt__shard_own_in(const memrt__shard_t *shard)
{
    return memrt__shard_is_open(shard)
               ? memrt__own_load(&shard->bytes_in)
               : memrt__own_load(&shard->in_limit) - memrt__own_load(&shard->alloc_left);
}
static inline size_t memrt__shard_own_out(const memrt__shard_t *shard)
{
    return memrt__shard_is_open(shard)
               ? memrt__own_load(&shard->bytes_out)
               : memrt__own_load(&shard->out_limit) - memrt__own_load(&shard->free_left);
}

/// Return the bytes in use of a shard of the calling thread, as a signed value. Frees of blocks
/// that another thread allocated make the value negative.
static inline size_t memrt__shard_net(const memrt__shard_t *shard)
{
    return memrt__shard_own_in(shard) - memrt__shard_own_out(shard);
}

/// Return the allocated and the freed bytes of a shard of any thread. Each result is a value that
/// the counter had during the call; the freed bytes may include a block that the owner is freeing.
size_t memrt__shard_bytes_in(const memrt__shard_t *shard);
size_t memrt__shard_bytes_out(const memrt__shard_t *shard);

/// Return the histogram bin of a size: its number of significant bits, at most the last bin.
static inline unsigned memrt__size_bin(size_t size)
{
    unsigned bits = size == 0 ? 0 : memrt__floor_log2(size) + 1;
    return bits < MEMRT_SIZE_BINS ? bits : MEMRT_SIZE_BINS - 1;
}

/// Return the first counter in `made` and `freed` for blocks of a kind.
static MEMRT__INLINE unsigned memrt__counts_of_kind(unsigned kind)
{
    static const uint8_t first[MEMRT__KINDS] = {[MEMRT_KIND_INLINE] = MEMRT__COUNTS_INLINE,
                                                [MEMRT_KIND_BLOCK] = MEMRT__COUNTS_BLOCK,
                                                [MEMRT__KIND_TINY] = MEMRT__COUNTS_TINY,
                                                [MEMRT_KIND_ADOPTED] = MEMRT__COUNTS_ADOPTED,
                                                [MEMRT_KIND_RESIZABLE] = MEMRT__COUNTS_RESIZABLE};
    MEMRT__ASSERT(kind != 0 && kind < MEMRT__KINDS);
    return first[kind];
}

/// Return the place in `made` and `freed` of the counter for a block. Kinds without data have one
/// counter for all sizes.
static inline unsigned memrt__count_of_block(unsigned kind, size_t size)
{
    unsigned first = memrt__counts_of_kind(kind);
    bool has_data = first < MEMRT__COUNTS_ADOPTED;
    MEMRT__ASSERT(kind != MEMRT__KIND_TINY || size - 1 < MEMRT_TINY_MAX);
    return has_data ? first + memrt__size_bin(size) : first;
}

/// Return memrt__count_of_block() for a kind with data and 1 to 2^(MEMRT_SIZE_BINS - 2) bytes.
static MEMRT__INLINE size_t memrt__count_of_usual_block(unsigned kind, size_t size)
{
    MEMRT__ASSERT(size != 0 && memrt__floor_log2(size) + 1 < MEMRT_SIZE_BINS);
    size_t bit = memrt__floor_log2(size);
    MEMRT__KEEP_IN_BRANCH(bit); /* so that the constant becomes part of the address */
    return memrt__counts_of_kind(kind) + 1 + bit;
}

/// Count `bytes` more in use, in a shard of the calling thread, if that is no new maximum, or if
/// the gauge climbs. False: nothing changed; memrt__shard_grow() counts the bytes.
static MEMRT__INLINE bool memrt__shard_grow_fast(memrt__shard_t *shard, size_t bytes)
{
    if (!MEMRT_COUNTERS) { /* only the closed shard has a negative value */
        return (ptrdiff_t)memrt__own_load(&shard->alloc_left) >= 0;
    }
    size_t left = memrt__own_load(&shard->alloc_left) - bytes;
    if (MEMRT__UNLIKELY((ptrdiff_t)left < (ptrdiff_t)memrt__own_load(&shard->free_left))) {
        return false;
    }
    memrt__store_relaxed(&shard->alloc_left, left);
    return true;
}

/// Return whether memrt__shard_grow_fast() of `bytes` would count.
static inline bool memrt__shard_can_grow(const memrt__shard_t *shard, size_t bytes)
{
    size_t left = memrt__own_load(&shard->alloc_left) - bytes;
    return (ptrdiff_t)left >= (ptrdiff_t)memrt__own_load(&shard->free_left);
}

/// Count `bytes` less in use, in a shard of the calling thread, unless the gauge climbs or must be
/// compared with `low`. False: nothing changed; memrt__shard_shrink() counts the bytes.
static MEMRT__INLINE bool memrt__shard_shrink_fast(memrt__shard_t *shard, size_t bytes)
{
    return !MEMRT_COUNTERS || MEMRT__LIKELY(memrt__own_take_release(&shard->free_left, bytes));
}

/// Slow paths of memrt__shard_grow() and memrt__shard_shrink().
MEMRT__COLD void memrt__gauge_grow(memrt__shard_t *shard, memrt__account_t *account, size_t bytes);
MEMRT__COLD void memrt__gauge_shrink(memrt__shard_t *shard, memrt__account_t *account,
                                     size_t bytes);

/// Subtract from the allocated bytes of a shard of the calling thread: bytes of a block that a
/// resize replaces are not new.
void memrt__shard_ungrow(memrt__shard_t *shard, size_t bytes);

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
/// 1/MEMRT__GAUGE_PARTS of the allowance above the last report, and the next free or report ends
/// the climb. During a climb, the bytes in use are the maximum, so that `high` needs no update for
/// each allocation.
static inline bool memrt__gauge_climbs(const memrt__shard_t *shard)
{
    return memrt__own_load(&shard->climbs) % 2 != 0;
}

/// In a forked child: bring a gauge to rest at its bytes in use, without a report. The owner may
/// have stayed in the parent, at any step.
void memrt__gauge_forked(memrt__shard_t *shard);

/// Report everything to the aggregates and bring the gauge to rest until its next change. Only the
/// owner of the gauge may call this function, or any thread while the gauge has no owner.
void memrt__gauge_rest(memrt__shard_t *shard, memrt__account_t *account);

/// Return the signed rise of a gauge since its last report. Threads: any thread. If the owner
/// reports meanwhile, the result is a rise of a report, and the missing rise is already in the
/// peak.
size_t memrt__gauge_rise(const memrt__shard_t *shard);

/// Return whether a result of memrt__gauge_rise() only states that the gauge reports.
static inline bool memrt__is_rise_of_report(size_t rise)
{
    return (ptrdiff_t)rise < (ptrdiff_t)MEMRT__GAUGE_REPORTS / 2;
}

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

/// Make sure that the owner may count `bytes` more in use without exceeding a limit of the
/// account's aggregates. With `pending`, no other block of the thread can use these bytes until
/// memrt__promise_settle() or memrt__gauge_drop(). False: a limit has less room, and nothing has
/// changed.
MEMRT__COLD bool memrt__gauge_ensure(memrt__shard_t *shard, memrt__account_t *account, size_t bytes,
                                     bool pending) MEMRT_MUST_CHECK;

/// End the promise of a pending block that is not counted after all.
MEMRT__COLD void memrt__gauge_drop(memrt__shard_t *shard, memrt__account_t *account, size_t bytes);

#endif
