#ifndef MEMRT_STATS_TALLY_H
#define MEMRT_STATS_TALLY_H

#include "runtime/config/options.h"
#include "runtime/stats/promise.h"
#include "runtime/stats/shard.h"
#include "runtime/thread/thread.h"

/// Counting on the calling thread: the shard of the thread for an account, and changes of counters.

/// Return the shard of a thread for an account, and create the shard if necessary. NULL: out of
/// memory.
MEMRT__COLD memrt__shard_t *memrt__shard_make(memrt__thread_t *thread,
                                              const memrt__account_t *account);

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
        if (MEMRT__UNLIKELY(shard == NULL)) {
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

/// Count an allocated block. A count of -1 takes back an allocation that replaces another block in
/// a resize, or the old size of a resized block.
static inline void memrt__tally_made(const memrt__tally_t *tally, unsigned kind, size_t size,
                                     size_t count)
{
    memrt__tally_in(tally, &tally->shard->made[memrt__count_of_block(kind, size)], count);
}

/// Count a freed block.
static inline void memrt__tally_freed(const memrt__tally_t *tally, unsigned kind, size_t size)
{
    memrt__tally_out(tally, &tally->shard->freed[memrt__count_of_block(kind, size)], 1);
}

/// Count a resized block of a kind with data: one allocated block has another size from now on.
static inline void memrt__tally_resized(const memrt__tally_t *tally, unsigned kind, size_t old_size,
                                        size_t size)
{
    memrt__tally_in(tally, &tally->shard->realloc, 1);
    if (memrt__size_bin(old_size) != memrt__size_bin(size)) {
        memrt__tally_made(tally, kind, size, 1);
        memrt__tally_made(tally, kind, old_size, (size_t)-1);
    }
}

/// Report a gauge that is not at rest, if peaks are exact.
static inline void memrt__tally_observe(const memrt__tally_t *tally)
{
    if (MEMRT__UNLIKELY(memrt__load_relaxed(&memrt__options.peak_mode) == MEMRT__PEAK_EXACT) &&
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

/// Subtract from the allocated bytes: bytes of a block that a resize replaces are not new.
static inline void memrt__tally_ungrow(const memrt__tally_t *tally, size_t bytes)
{
    if (!MEMRT_COUNTERS) {
        return;
    }
    if (MEMRT__LIKELY(tally->own)) {
        memrt__shard_ungrow(tally->shard, bytes);
    } else {
        memrt__fetch_add_relaxed(&tally->shard->bytes_in, (size_t)0 - bytes);
        memrt__account_add_shared(tally->account, (size_t)0 - bytes);
    }
}

/// End the state of a pending block of `bytes`, right before memrt__tally_grow() counts the block.
static inline void memrt__tally_settle(const memrt__tally_t *tally, size_t bytes)
{
    if (MEMRT__UNLIKELY(tally->own && memrt__own_load(&tally->shard->pending) != 0)) {
        memrt__promise_settle(tally->shard, bytes);
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
