#ifndef MEMRT_STATS_SHARD_H
#define MEMRT_STATS_SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/atomics.h"
#include "runtime/base/compiler.h"

/// Counters that never contend: each thread has a record, each record a shard for every account
/// (policy). Only the owner of a record writes it; sums are taken at read.
///
/// Records are never freed: when a thread ends, its record waits with its counts for the next new
/// thread, so there are as many as there were threads at once. Invariants over all shards of one
/// account, when no thread is inside memrt:
///     live blocks    == sum(alloc) - sum(free)
///     live MemInfos  == sum(mi_alloc) - sum(mi_free)
///     live bytes     == sum(bytes_in) - sum(bytes_out) == account.flushed + sum(gauge.pending)

/// Bytes in use that a thread has not told the account of yet. Words are read as signed.
typedef struct memrt__gauge {
    size_t pending; ///< own; bytes in use since the last flush
    size_t rise;    ///< own; most that `pending` was since then, never below 0
} memrt__gauge_t;

/// What one thread did for one account. Words in pairs: what came in, what went out. A reader that
/// takes the outs first (acquire) and the ins after sees no more outs than ins: the outs are
/// written with release, after the ins of the same blocks.
typedef struct memrt__shard {
    size_t alloc, free;             ///< own; blocks
    size_t mi_alloc, mi_free;       ///< own; MemInfos
    size_t bytes_in, bytes_out;     ///< own; bytes as asked for
    size_t held_in, held_out;       ///< own; bytes asked of the allocator
    size_t adopted_in, adopted_out; ///< own; bytes of adopted buffers
    size_t realloc;                 ///< own; blocks resized
    size_t failed;                  ///< own; requests refused
    memrt__gauge_t gauge;
} memrt__shard_t;

/// The shared part of an account.
typedef struct memrt__account {
    uint32_t index;         ///< which shard of each record; fixed
    memrt__shard_t *shared; ///< counters for threads that could not get a record, added atomically
    size_t flushed;         ///< any thread, relaxed add; bytes in use as far as threads told
    size_t peak;            ///< any thread, relaxed raise; most that `flushed` plus a rise was
    size_t past_gauges;     ///< any thread, relaxed; not 0: bytes were told that no gauge knew of
    struct memrt__account *next; ///< under the lock of rank THREADS
} memrt__account_t;

/// A gauge is flushed when it is this far from zero: the peak's error bound per thread, in bytes.
#define MEMRT__GAUGE_LIMIT ((ptrdiff_t)64 << 10)

#define MEMRT__ACCOUNTS 4096u
#define MEMRT__CHUNK 16u

/// Everything memrt keeps for one thread.
typedef struct memrt__thread {
    memrt__gauge_t process;                                 ///< the gauge of the process account
    struct memrt__thread *next;                             ///< fixed once linked
    bool in_use;                                            ///< under the lock of rank THREADS
    memrt__shard_t *chunks[MEMRT__ACCOUNTS / MEMRT__CHUNK]; ///< own; written under that lock too
} memrt__thread_t;

/// The account of the process holds no shards, only the gauge's shared part: its counts are the
/// sums over all accounts.
extern memrt__account_t memrt__process;

/// Let sums over all accounts see `account`, whose index and shared shard stand, from now on.
void memrt__account_enter(memrt__account_t *account);

/// First of all entered accounts, each linked to the next. Under the lock of rank THREADS.
memrt__account_t *memrt__account_first(void);

/// Take an account out. Under the lock of rank THREADS.
void memrt__account_leave(memrt__account_t *account);

/// The calling thread's record; NULL before its first call. Its own.
extern MEMRT__THREAD_LOCAL memrt__thread_t *memrt__self;
MEMRT__COLD memrt__thread_t *memrt__thread_make(void);
MEMRT__COLD memrt__shard_t *memrt__shard_make(memrt__thread_t *thread, uint32_t index);
MEMRT__COLD void memrt__gauge_rose(memrt__gauge_t *gauge, memrt__account_t *account);
MEMRT__COLD void memrt__gauge_flush(memrt__gauge_t *gauge, memrt__account_t *account);

/// First of all records, each linked to the next. Under the lock of rank THREADS.
memrt__thread_t *memrt__thread_first(void);

/// In a forked child: the other threads are gone, their records wait for new ones.
void memrt__thread_forked(void);

/// Where the calling thread counts for one account: its own shard, or, when there was no memory for
/// one, the account's shared shard.
typedef struct memrt__tally {
    memrt__account_t *account;
    memrt__shard_t *shard;
    memrt__thread_t *thread; ///< NULL: the shard is shared
} memrt__tally_t;

static inline memrt__tally_t memrt__tally(memrt__account_t *account)
{
    memrt__thread_t *thread = memrt__self;
    if (MEMRT__UNLIKELY(thread == NULL)) {
        thread = memrt__thread_make();
    }
    if (MEMRT__LIKELY(thread != NULL)) {
        memrt__shard_t *chunk = thread->chunks[account->index / MEMRT__CHUNK];
        if (MEMRT__LIKELY(chunk != NULL)) {
            return (memrt__tally_t){account, &chunk[account->index % MEMRT__CHUNK], thread};
        }
        memrt__shard_t *shard = memrt__shard_make(thread, account->index);
        if (shard != NULL) {
            return (memrt__tally_t){account, shard, thread};
        }
    }
    return (memrt__tally_t){account, account->shared, NULL};
}

/// Add to an "in" word of the tally's shard.
static inline void memrt__tally_in(const memrt__tally_t *tally, size_t *word, size_t value)
{
    if (MEMRT__LIKELY(tally->thread != NULL)) {
        memrt__own_add(word, value);
    } else {
        memrt__fetch_add_relaxed(word, value);
    }
}

/// Add to an "out" word; partner: the acquire loads of memrt__stats_sum.
static inline void memrt__tally_out(const memrt__tally_t *tally, size_t *word, size_t value)
{
    if (MEMRT__LIKELY(tally->thread != NULL)) {
        memrt__own_add_release(word, value);
    } else {
        memrt__fetch_add_release(word, value);
    }
}

static inline void memrt__gauge_add(memrt__gauge_t *gauge, memrt__account_t *account, size_t bytes)
{
    memrt__own_add(&gauge->pending, bytes);
    if ((ptrdiff_t)gauge->pending > (ptrdiff_t)gauge->rise) {
        memrt__gauge_rose(gauge, account);
    }
}

static inline void memrt__gauge_sub(memrt__gauge_t *gauge, memrt__account_t *account, size_t bytes)
{
    memrt__own_add(&gauge->pending, (size_t)0 - bytes);
    if (MEMRT__UNLIKELY((ptrdiff_t)gauge->pending < -MEMRT__GAUGE_LIMIT)) {
        memrt__gauge_flush(gauge, account);
    }
}

MEMRT__COLD void memrt__account_add_shared(memrt__account_t *account, size_t bytes);

/// `bytes` more are in use, for the account and for the process.
static inline void memrt__tally_grow(const memrt__tally_t *tally, size_t bytes)
{
    memrt__tally_in(tally, &tally->shard->bytes_in, bytes);
    if (MEMRT__LIKELY(tally->thread != NULL)) {
        memrt__gauge_add(&tally->shard->gauge, tally->account, bytes);
        memrt__gauge_add(&tally->thread->process, &memrt__process, bytes);
    } else {
        memrt__account_add_shared(tally->account, bytes);
        memrt__account_add_shared(&memrt__process, bytes);
    }
}

/// `bytes` less are in use.
static inline void memrt__tally_shrink(const memrt__tally_t *tally, size_t bytes)
{
    memrt__tally_out(tally, &tally->shard->bytes_out, bytes);
    if (MEMRT__LIKELY(tally->thread != NULL)) {
        memrt__gauge_sub(&tally->shard->gauge, tally->account, bytes);
        memrt__gauge_sub(&tally->thread->process, &memrt__process, bytes);
    } else {
        memrt__account_add_shared(tally->account, (size_t)0 - bytes);
        memrt__account_add_shared(&memrt__process, (size_t)0 - bytes);
    }
}

#endif
