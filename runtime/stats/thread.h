#ifndef MEMRT_STATS_THREAD_H
#define MEMRT_STATS_THREAD_H

#include <pthread.h>

#include <memrt/meminfo.h>

#include "runtime/config/options.h"
#include "runtime/stats/shard.h"

/// Per-thread record: all state that memrt keeps for one thread, mainly shards and cached blocks.
///
/// Records are never freed. When a thread ends, the record keeps its counts and waits for the next
/// new thread. So the number of records is the maximum number of concurrent threads. Only the owner
/// writes a record, unless the comment of a member names another writer.
///
/// A thread returns its record in a thread-specific destructor. A later destructor of another
/// library may take a record again. After the last round of destructors nothing returns that
/// record. The robust mutex `alive` then shows that the owner is dead. A later thread that finds no
/// free record reclaims the record.

#define MEMRT__CHUNK 16u

/// Number of size classes, as defined in size_class.h.
#define MEMRT__CLASSES 100

/// Thread cache of one size class: a stack of free blocks, the most recently freed block on top.
///
/// Only the owner writes a bin, except for `limit`: another thread sets `limit` to 0 to ask for the
/// cached blocks. Invariant: count <= limit, except during a free and after such a request.
typedef struct memrt__bin {
    size_t head;    ///< address of the first block, 0 for none
    size_t count;   ///< blocks in the list
    size_t limit;   ///< relaxed; number of blocks at which the bin gives some away
    uint32_t bytes; ///< fixed; size of one block
    bool ran_empty; ///< true: the bin ran empty since the limit last grew
} memrt__bin_t;

/// Record of a thread. The members that every allocation reads come first, in one cache line. "Own"
/// marks a member that only the owner writes; "THREADS" means under the lock of that rank.
typedef struct memrt__thread {
    struct memrt_scope *scope;    ///< own; current scope; NULL: no scope
    struct memrt_policy *part_of; ///< own; policy that `part` was looked up for; NULL: none
    struct memrt_policy *part;    ///< own; subpolicy of `part_of` in the current scope
    memrt__shard_t *part_shard;   ///< own; shard for `part`; NULL: the fast path is closed
    size_t parts_gone;            ///< own; memrt__subpolicies_gone at the time of that look-up
    size_t until_sampled;         ///< own; bytes up to the next sampled allocation
    size_t sample;                ///< own; mean distance that `until_sampled` was drawn for
    uint64_t random;              ///< own; state of the random number generator
    memrt__shard_t first;         ///< own; shard of account 0
    memrt__bin_t bins[MEMRT__CLASSES];
    size_t limits[2]; ///< own; bytes that all bin limits allow: small blocks, large blocks
    size_t live;      ///< own; bytes in use in the process when a bin last ran empty
    size_t asked;     ///< written under THREADS; not 0: the thread must empty its bins
    struct memrt__thread *next; ///< fixed once linked
    pthread_mutex_t alive;      ///< robust; held by the owner of the record
    bool in_use;                ///< under THREADS; a thread owns the record
    uint32_t number;            ///< own; operating system's id of the owner
    unsigned destructors;       ///< own; nesting depth of running destructors
    memrt_meminfo_t *put_off;   ///< own; deferred MemInfos, see memrt__put_off_link()
    void (*end_put_off)(void);  ///< own; runs deferred destructors on the calling thread
    struct memrt__thread_site_counters *births; ///< own, written under THREADS; counts by site
    struct memrt__trace_buffer *trace; ///< own, written under THREADS; buffer of trace events
    memrt__shard_t *chunks[MEMRT__ACCOUNTS / MEMRT__CHUNK]; ///< own, written under THREADS
} memrt__thread_t;

/// Record of the calling thread; NULL before its first call.
extern MEMRT__THREAD_LOCAL memrt__thread_t *memrt__self;
MEMRT__COLD memrt__thread_t *memrt__thread_make(void);
MEMRT__COLD memrt__shard_t *memrt__shard_make(memrt__thread_t *thread,
                                              const memrt__account_t *account);

/// Allocate `size` zeroed bytes and store their address in `slot`, a pointer in the record of the
/// calling thread. Threads that walk the records see either NULL or zeroed memory. Failure: returns
/// false when out of memory, or when the lock is not available during a fork.
MEMRT__COLD bool memrt__thread_extend(void *slot, size_t size);

/// Set the callbacks for records; once, before the first record is made. `made` runs on each new
/// record before the record is linked. `ending` runs on the record of an ending thread: on that
/// thread, or on the thread that takes the record of a dead thread.
typedef void (*memrt__thread_fn)(memrt__thread_t *thread);
void memrt__thread_hooks(memrt__thread_fn made, memrt__thread_fn ending);

/// Return the first record; `next` links the rest. Under the lock of rank THREADS.
memrt__thread_t *memrt__thread_first(void);

/// Make the records of dead threads, which did not return them, available to new threads.
void memrt__thread_reap(void);

/// Address of the first MemInfo whose deferred destructor lost its thread, 0 for none. The next
/// thread that runs a destructor also runs the destructors of this list. Relaxed; written under the
/// lock of rank THREADS.
extern size_t memrt__thread_left;

/// Move the destructors of memrt__thread_left to the calling thread, which must have none deferred.
MEMRT__COLD void memrt__thread_adopt_left(memrt__thread_t *self);

/// In a forked child: release the records of all other threads for reuse. The blocks in the thread
/// caches of released records are lost.
void memrt__thread_forked(void);

#if MEMRT_DEBUG
/// Return whether the invariants of all thread records hold: completely for the calling thread and
/// for records without a thread. Takes the lock of rank THREADS.
bool memrt__thread_is_valid(void);
#endif

/// Return the word of a deferred MemInfo that links the list of deferred MemInfos. The data of an
/// inline MemInfo follows the header, so the pointer to the data can be restored. Only inline
/// MemInfos have an external allocator, so the word of other MemInfos is NULL.
static inline size_t *memrt__put_off_link(memrt_meminfo_t *mi)
{
    return mi->kind == MEMRT_KIND_INLINE ? (size_t *)&mi->data : (size_t *)&mi->external_allocator;
}

static inline memrt__thread_t *memrt__thread_self(void)
{
    memrt__thread_t *self = memrt__self;
    return MEMRT__LIKELY(self != NULL) ? self : memrt__thread_make();
}

/// Return the shard of a thread for an account; NULL: none yet.
static inline memrt__shard_t *memrt__thread_shard(const memrt__thread_t *thread, uint32_t index)
{
    if (MEMRT__LIKELY(index == 0 || !MEMRT_COUNTERS)) {
        return (memrt__shard_t *)&thread->first;
    }
    memrt__shard_t *chunk = thread->chunks[index / MEMRT__CHUNK];
    return chunk == NULL ? NULL : &chunk[index % MEMRT__CHUNK];
}

/// Shard in which the allocation fast path of the calling thread counts. A NULL shard closes the
/// fast path.
typedef struct memrt__home {
    memrt__shard_t *shard;
    uint32_t account; ///< index of the account
} memrt__home_t;

/// Shard in which the calling thread counts for one account: its own shard, or the shared shard of
/// the account, if there was no memory for an own shard.
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

/// Add to an "in" word of the shard.
static inline void memrt__tally_in(const memrt__tally_t *tally, size_t *word, size_t value)
{
    if (MEMRT__LIKELY(tally->own)) {
        memrt__count_in(word, value);
    } else {
        memrt__fetch_add_relaxed(word, value);
    }
}

/// Add to an "out" word of the shard. Release; partner: the acquire loads of memrt__stats_read().
static inline void memrt__tally_out(const memrt__tally_t *tally, size_t *word, size_t value)
{
    if (MEMRT__LIKELY(tally->own)) {
        memrt__count_out(word, value);
    } else {
        memrt__fetch_add_release(word, value);
    }
}

/// Add `count` allocations of `size` bytes to the histogram of sizes, if the shard has a histogram.
/// A count of -1 takes back an allocation that replaces another block in a resize.
static inline void memrt__tally_size(const memrt__tally_t *tally, size_t size, size_t count)
{
    size_t *sizes = tally->shard->sizes;
    if (sizes != NULL) {
        memrt__tally_in(tally, &sizes[memrt__size_bin(size)], count);
    }
}

/// Report a gauge that is not at rest, if the option exact_peak is on.
static inline void memrt__tally_observe(const memrt__tally_t *tally)
{
    if (MEMRT__UNLIKELY(memrt__load_relaxed(&memrt__options.exact_peak) != 0) &&
        !memrt__gauge_is_at_rest(tally->shard)) {
        memrt__gauge_report(tally->shard, tally->account);
    }
}

/// Count `bytes` more in use, for the account and its aggregates.
static inline void memrt__tally_grow(const memrt__tally_t *tally, size_t bytes)
{
    if (MEMRT__LIKELY(tally->own)) {
        memrt__shard_grow(tally->shard, tally->account, bytes);
        memrt__tally_observe(tally);
    } else {
        memrt__fetch_add_relaxed(&tally->shard->bytes_in, bytes);
        memrt__account_add_shared(tally->account, bytes);
    }
}

/// Subtract `bytes` from bytes_in: bytes of a block that a resize replaces are not new.
static inline void memrt__tally_ungrow(const memrt__tally_t *tally, size_t bytes)
{
    memrt__tally_in(tally, &tally->shard->bytes_in, (size_t)0 - bytes);
    if (!tally->own) {
        memrt__account_add_shared(tally->account, (size_t)0 - bytes);
    }
}

/// Count `bytes` less in use, for the account and its aggregates.
static inline void memrt__tally_shrink(const memrt__tally_t *tally, size_t bytes)
{
    if (MEMRT__LIKELY(tally->own)) {
        memrt__shard_shrink(tally->shard, tally->account, bytes);
        memrt__tally_observe(tally);
    } else {
        memrt__fetch_add_release(&tally->shard->bytes_out, bytes);
        memrt__account_add_shared(tally->account, (size_t)0 - bytes);
    }
}

#endif
