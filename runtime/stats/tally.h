#ifndef MEMRT_STATS_TALLY_H
#define MEMRT_STATS_TALLY_H

#include "runtime/config/options.h"
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
    if (MEMRT__LIKELY(tally->own)) {
        memrt__gauge_end_climb(tally->shard);
    }
    memrt__tally_in(tally, &tally->shard->bytes_in, (size_t)0 - bytes);
    if (MEMRT__LIKELY(tally->own)) {
        memrt__gauge_measure(tally->shard);
    } else {
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
