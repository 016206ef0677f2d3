#ifndef MEMRT_STATS_THREAD_H
#define MEMRT_STATS_THREAD_H

#include <memrt/meminfo.h>

#include "runtime/base/options.h"
#include "runtime/stats/shard.h"

/// Everything memrt keeps for one thread: its shards, and the blocks that it keeps for reuse.
///
/// Records are never freed: when a thread ends, its record waits with its counts for the next new
/// thread, so there are as many as there were threads at once. Only the owner writes a record.

#define MEMRT__CHUNK 16u

/// Number of size classes; size_class.h says which.
#define MEMRT__CLASSES 100

/// Blocks of one class that the thread keeps, the last given back on top.
///
/// Words are written by the owner, but for a limit, which others set to 0 when they ask for what
/// the thread keeps. Invariant: count is at most limit, but while a block is given, or once asked
/// for.
typedef struct memrt__bin {
    size_t head;    ///< address of the first block, 0 for none
    size_t count;   ///< blocks in the list
    size_t limit;   ///< at this many the bin gives some away; relaxed
    uint32_t bytes; ///< of one block; fixed
    bool ran_empty; ///< since the limit last grew
} memrt__bin_t;

/// What every birth asks stands first, in one cache line.
typedef struct memrt__thread {
    struct memrt_scope *scope;    ///< own; what it is in; NULL: no scope
    struct memrt_policy *part_of; ///< own; policy of which `part` is the part there; NULL: of none
    struct memrt_policy *part;    ///< own
    memrt__shard_t *part_shard;   ///< own; its shard for that; NULL: no short way leads there
    size_t parts_gone;            ///< own; memrt__parts_gone when that was so
    size_t until_sampled;         ///< own; bytes up to the next birth of the sample
    size_t sample;                ///< own; mean distance for which that was drawn
    uint64_t random;              ///< own; where its sequence of numbers stands
    memrt__shard_t first;         ///< of the account 0
    memrt__bin_t bins[MEMRT__CLASSES];
    size_t limits[2]; ///< own; bytes that all limits allow: of small blocks, of large ones
    size_t live;      ///< own; bytes that the process had in use when a bin last ran empty
    size_t asked;     ///< not 0: to give its bins away; written under the lock of rank THREADS
    struct memrt__thread *next; ///< fixed once linked
    bool in_use;                ///< under the lock of rank THREADS
    uint32_t number;            ///< own; operating system's id of the thread that has it
    unsigned destructors;       ///< own; that run now, one inside the other
    memrt_meminfo_t *put_off;   ///< own; whose destructors wait for these, linked by meminfo.c
    struct memrt__thread_births *births; ///< own; by site; written under that lock too
    struct memrt__trace_buffer *trace;   ///< own; events of a trace; written under that lock too
    memrt__shard_t *chunks[MEMRT__ACCOUNTS / MEMRT__CHUNK]; ///< own; written under that lock too
} memrt__thread_t;

/// The calling thread's record; NULL before its first call. Its own.
extern MEMRT__THREAD_LOCAL memrt__thread_t *memrt__self;
MEMRT__COLD memrt__thread_t *memrt__thread_make(void);
MEMRT__COLD memrt__shard_t *memrt__shard_make(memrt__thread_t *thread,
                                              const memrt__account_t *account);

/// Have a word of the calling thread's record point to `size` bytes more of it, all zero. False: no
/// memory. Who walks the records sees either none or what is zeroed.
MEMRT__COLD bool memrt__thread_extend(void *slot, size_t size);

/// What is done with new records before they are linked, and with those of ending threads on these
/// threads; set once, before the first record is made.
typedef void (*memrt__thread_fn)(memrt__thread_t *thread);
void memrt__thread_hooks(memrt__thread_fn made, memrt__thread_fn ending);

/// First of all records, each linked to the next. Under the lock of rank THREADS.
memrt__thread_t *memrt__thread_first(void);

/// In a forked child: the other threads are gone, their records wait for new ones, the blocks that
/// they kept are lost.
void memrt__thread_forked(void);

static inline memrt__thread_t *memrt__thread_self(void)
{
    memrt__thread_t *self = memrt__self;
    return MEMRT__LIKELY(self != NULL) ? self : memrt__thread_make();
}

/// The shard of a thread for an account, or NULL while it has none.
static inline memrt__shard_t *memrt__thread_shard(const memrt__thread_t *thread, uint32_t index)
{
    if (MEMRT__LIKELY(index == 0 || !MEMRT_COUNTERS)) {
        return (memrt__shard_t *)&thread->first;
    }
    memrt__shard_t *chunk = thread->chunks[index / MEMRT__CHUNK];
    return chunk == NULL ? NULL : &chunk[index % MEMRT__CHUNK];
}

/// Where the short way of a birth on the calling thread counts: in its shard of an account. NULL:
/// that way is not open.
typedef struct memrt__home {
    memrt__shard_t *shard;
    uint32_t account; ///< its index
} memrt__home_t;

/// Where the calling thread counts for one account: its own shard, or, when there was no memory for
/// one, the account's shared shard.
typedef struct memrt__tally {
    memrt__account_t *account;
    memrt__shard_t *shard;
    bool own;
} memrt__tally_t;

static inline memrt__tally_t memrt__tally(memrt__account_t *account)
{
    if (!MEMRT_COUNTERS) {
        return (memrt__tally_t){account, account->shared, true};
    }
    memrt__thread_t *thread = memrt__thread_self();
    if (MEMRT__LIKELY(thread != NULL)) {
        memrt__shard_t *shard = memrt__thread_shard(thread, account->index);
        if (MEMRT__UNLIKELY(!memrt__shard_serves(shard, account))) {
            shard = memrt__shard_make(thread, account);
        }
        if (shard != NULL) {
            return (memrt__tally_t){account, shard, true};
        }
    }
    return (memrt__tally_t){account, account->shared, false};
}

/// Add to an "in" word of the tally's shard.
static inline void memrt__tally_in(const memrt__tally_t *tally, size_t *word, size_t value)
{
    if (MEMRT__LIKELY(tally->own)) {
        memrt__count_in(word, value);
    } else {
        memrt__fetch_add_relaxed(word, value);
    }
}

/// Add to an "out" word; partner: the acquire loads of memrt__stats_read.
static inline void memrt__tally_out(const memrt__tally_t *tally, size_t *word, size_t value)
{
    if (MEMRT__LIKELY(tally->own)) {
        memrt__count_out(word, value);
    } else {
        memrt__fetch_add_release(word, value);
    }
}

/// A birth of `size` bytes, where births are counted by size.
static inline void memrt__tally_size(const memrt__tally_t *tally, size_t size)
{
    size_t *sizes = tally->shard->sizes;
    if (sizes != NULL) {
        memrt__tally_in(tally, &sizes[memrt__size_bin(size)], 1);
    }
}

/// Once peaks are to be exact, a gauge that still hides something tells all.
static inline void memrt__tally_heed(const memrt__tally_t *tally)
{
    if (MEMRT__UNLIKELY(memrt__load_relaxed(&memrt__options.exact_peak) != 0) &&
        !memrt__gauge_is_at_rest(tally->shard)) {
        memrt__gauge_tell(tally->shard, tally->account);
    }
}

/// `bytes` more are in use, for the account and for the process.
static inline void memrt__tally_grow(const memrt__tally_t *tally, size_t bytes)
{
    if (MEMRT__LIKELY(tally->own)) {
        memrt__shard_grow(tally->shard, tally->account, bytes);
        memrt__tally_heed(tally);
    } else {
        memrt__fetch_add_relaxed(&tally->shard->bytes_in, bytes);
        memrt__account_add_shared(tally->account, bytes);
    }
}

/// `bytes` that came in are not new: they are those of a block that goes.
static inline void memrt__tally_ungrow(const memrt__tally_t *tally, size_t bytes)
{
    memrt__tally_in(tally, &tally->shard->bytes_in, (size_t)0 - bytes);
    if (!tally->own) {
        memrt__account_add_shared(tally->account, (size_t)0 - bytes);
    }
}

/// `bytes` less are in use.
static inline void memrt__tally_shrink(const memrt__tally_t *tally, size_t bytes)
{
    if (MEMRT__LIKELY(tally->own)) {
        memrt__shard_shrink(tally->shard, tally->account, bytes);
        memrt__tally_heed(tally);
    } else {
        memrt__fetch_add_release(&tally->shard->bytes_out, bytes);
        memrt__account_add_shared(tally->account, (size_t)0 - bytes);
    }
}

#endif
