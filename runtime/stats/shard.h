#ifndef MEMRT_STATS_SHARD_H
#define MEMRT_STATS_SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/meminfo.h>
#include <memrt/stats.h>

#include "runtime/base/atomics.h"
#include "runtime/base/compiler.h"
#include "runtime/base/size.h"

/// Counters that never contend: each thread has a shard for every account (policy) that it uses.
/// Only the owner of a shard writes it; sums are taken at read.
///
/// Invariants over all shards of one account, when no thread is inside memrt:
///     live blocks   == sum(made) - sum(freed)
///     live bytes    == sum(bytes_in) - sum(bytes_out)
///                   == sum(told) + sum(bytes_in - bytes_out - told)

/// Tiny blocks are blocks to everybody else.
#define MEMRT__KIND_TINY (MEMRT_KIND_BLOCK + 1)
#define MEMRT__KINDS (MEMRT__KIND_TINY + 1)

/// By how much the header of a tiny block is smaller.
#define MEMRT__TINY_SAVES 48u

/// What one thread did for one account. Words in pairs: what came in, what went out. A reader that
/// takes the outs first (acquire) and the ins after sees no more outs than ins: the outs are
/// written with release, after the ins of the same blocks.
typedef struct memrt__shard {
    size_t bytes_in, bytes_out; ///< own; as asked for
    /* The gauge: what bytes_in - bytes_out, as signed numbers, did since the levels were told. */
    size_t high;                      ///< own; most that it was since then
    size_t low;                       ///< own; below this the levels are told
    size_t told;                      ///< own; what it was then; as `low`: they know all
    size_t falls;                     ///< own, release; how often they were told of less
    size_t made[MEMRT__KINDS];        ///< own; blocks by memrt_kind_t
    size_t freed[MEMRT__KINDS];       ///< own
    size_t promoted_in, promoted_out; ///< own; blocks that became MemInfos
    size_t extra_in, extra_out;       ///< own; bytes asked of allocators beyond header and data
    size_t adopted_in, adopted_out;   ///< own; bytes of adopted buffers
    size_t exported_in, exported_out; ///< own; references that other libraries were given
    size_t realloc;                   ///< own; blocks resized
    size_t failed;                    ///< own; requests refused
    size_t *sizes; ///< own; MEMRT_SIZE_BINS, births by size; NULL where nobody asks for them
} memrt__shard_t;

/// What shards are added up to: a policy, a scope with those below it, the process. An account is
/// part of several, which its gauges tell all.
typedef struct memrt__level {
    struct memrt__level *up; ///< what it is itself a part of; fixed
    size_t flushed;          ///< any thread, release add; bytes in use as far as threads told
    size_t peak;             ///< any thread, release raise; most that `flushed` plus a rise was
    size_t gauges;           ///< any thread, relaxed add; that hide something now
    size_t most_gauges;      ///< any thread, raise; that did at once, since the peak started
    size_t past_gauges;  ///< any thread, relaxed; not 0: one gauge alone is no proof of the peak
    memrt__shard_t past; ///< under the lock of rank THREADS; counts of accounts that are gone
    size_t sizes[MEMRT_SIZE_BINS]; ///< likewise; their births by size
} memrt__level_t;

/// Of what is on an account: whether this process or one that it was forked from made it.
typedef enum memrt__origin {
    MEMRT__OWN,
    MEMRT__INHERITED,
    MEMRT__MIXED, ///< there was no memory to tell them apart
    MEMRT__ORIGINS
} memrt__origin_t;

/// The shared part of an account.
typedef struct memrt__account {
    uint32_t index;         ///< which shard of each thread; fixed
    memrt__shard_t *shared; ///< counters for threads that could not get a record, added atomically
    memrt__level_t *policy; ///< fixed; up from it, the process
    memrt__level_t *scope;  ///< fixed; NULL: born in none
    memrt__origin_t origin; ///< written by a fork
    struct memrt__account *next; ///< under the lock of rank THREADS
} memrt__account_t;

/// Levels are told of a rise by this many bytes at the latest, and of a fall, which is often
/// made up for at once, by that many. Both are one gauge's part in the error of the peak.
#define MEMRT__GAUGE_RISE ((ptrdiff_t)64 << 10)
#define MEMRT__GAUGE_FALL (MEMRT__GAUGE_ERROR - MEMRT__GAUGE_RISE)
#define MEMRT__GAUGE_ERROR ((ptrdiff_t)1 << 20)

/// `high` of a gauge while it tells: below anything.
#define MEMRT__GAUGE_TELLS ((size_t)(PTRDIFF_MIN / 2))

#define MEMRT__ACCOUNTS 4096u

/// All accounts are part of it.
extern memrt__level_t memrt__process;

/// Whether an account is part of a level, also of one above its own.
bool memrt__account_is_in(const memrt__account_t *account, const memrt__level_t *level);

/// Let sums over all accounts see `account`, whose index and shared shard stand, from now on.
void memrt__account_enter(memrt__account_t *account);

/// First of all entered accounts, each linked to the next. Under the lock of rank THREADS.
memrt__account_t *memrt__account_first(void);

/// Take an account out. Under the lock of rank THREADS.
void memrt__account_leave(memrt__account_t *account);

/// Count in a word of an own shard, what came in or what went out. In a build without counters,
/// which shows what counting costs, nothing is counted and MEMRT_COUNTERS is 0.
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

/// Own: bytes in use by this shard alone, read as signed: others may have freed what it made.
static inline size_t memrt__shard_net(const memrt__shard_t *shard)
{
    return memrt__own_load(&shard->bytes_in) - memrt__own_load(&shard->bytes_out);
}

/// In which bin of a histogram a size is counted: that of the bits it has.
static inline unsigned memrt__size_bin(size_t size)
{
    unsigned bits = size == 0 ? 0 : memrt__floor_log2(size) + 1;
    return bits < MEMRT_SIZE_BINS ? bits : MEMRT_SIZE_BINS - 1;
}

/// Own: a birth of `size` bytes, where births are counted by size.
static inline void memrt__count_size(memrt__shard_t *shard, size_t size)
{
    if (MEMRT__UNLIKELY(shard->sizes != NULL)) {
        memrt__count_in(&shard->sizes[memrt__size_bin(size)], 1);
    }
}

/// Whether a thread can count for the account in its shard for that index, which may be of one that
/// had the index before.
static inline bool memrt__shard_serves(const memrt__shard_t *shard, const memrt__account_t *account)
{
    return shard != NULL && (account->scope == NULL || shard->sizes != NULL || !MEMRT_COUNTERS);
}

/// Whether `bytes` more, or less, in use are no news for the levels.
static inline bool memrt__shard_can_grow(const memrt__shard_t *shard, size_t bytes)
{
    return !MEMRT_COUNTERS ||
           (ptrdiff_t)(memrt__shard_net(shard) + bytes) <= (ptrdiff_t)memrt__own_load(&shard->high);
}

static inline bool memrt__shard_can_shrink(const memrt__shard_t *shard, size_t bytes)
{
    return !MEMRT_COUNTERS ||
           (ptrdiff_t)(memrt__shard_net(shard) - bytes) >= (ptrdiff_t)memrt__own_load(&shard->low);
}

MEMRT__COLD void memrt__gauge_rose(memrt__shard_t *shard, memrt__account_t *account);
MEMRT__COLD void memrt__gauge_tell(memrt__shard_t *shard, memrt__account_t *account);

/// Have `call` called, once, on a thread that next tells levels of a change, whatever locks it
/// holds; NULL: nothing any more.
void memrt__gauge_call_once(void (*call)(void));

/// Own: whether the levels know all that the gauge saw.
static inline bool memrt__gauge_is_at_rest(const memrt__shard_t *shard)
{
    return memrt__own_load(&shard->low) == memrt__own_load(&shard->told);
}

/// Tell the levels all, and hide nothing until the next change. For the gauge's owner, or while
/// there is none.
void memrt__gauge_rest(memrt__shard_t *shard, memrt__account_t *account);

/// What a gauge rose since it told, as signed, whoever asks. Its owner may tell meanwhile: then it
/// shows less before or after, and what it rose is in the peak.
static inline size_t memrt__gauge_rise(const memrt__shard_t *shard)
{
    size_t before = memrt__load_acquire(&shard->high);
    size_t told = memrt__load_acquire(&shard->told);
    size_t after = memrt__load_acquire(&shard->high);
    return ((ptrdiff_t)before < (ptrdiff_t)after ? before : after) - told;
}

/// Own shards only: `bytes` more are in use.
static inline void memrt__shard_grow(memrt__shard_t *shard, memrt__account_t *account, size_t bytes)
{
    memrt__count_in(&shard->bytes_in, bytes);
    if (MEMRT__UNLIKELY((ptrdiff_t)memrt__shard_net(shard) > (ptrdiff_t)shard->high)) {
        memrt__gauge_rose(shard, account);
    }
}

/// Own shards only: `bytes` less are in use.
static inline void memrt__shard_shrink(memrt__shard_t *shard, memrt__account_t *account,
                                       size_t bytes)
{
    memrt__count_out(&shard->bytes_out, bytes);
    if (MEMRT__UNLIKELY((ptrdiff_t)memrt__shard_net(shard) < (ptrdiff_t)shard->low)) {
        memrt__gauge_tell(shard, account);
    }
}

/// Add to what shared shards count.
MEMRT__COLD void memrt__account_add_shared(memrt__account_t *account, size_t bytes);

#endif
