#include "runtime/stats/stats.h"

#include <string.h>

#include "runtime/base/lock.h"
#include "runtime/base/size.h"

/// Counts of accounts that are gone. Under the lock of rank THREADS.
static memrt__shard_t past;

/// What to add up: shards of one index, or of all.
typedef struct walk {
    const memrt__account_t *account; ///< NULL: all
    memrt__shard_t sum;              ///< gauge words: sum of pending, highest rise
    size_t threads;                  ///< records that took part
    uint64_t peak;                   ///< highest that the account and its gauges know of
} walk_t;

static void add_outs(const memrt__shard_t *shard, memrt__shard_t *sum)
{
    sum->free += memrt__load_acquire(&shard->free);
    sum->mi_free += memrt__load_acquire(&shard->mi_free);
    sum->bytes_out += memrt__load_acquire(&shard->bytes_out);
    sum->held_out += memrt__load_acquire(&shard->held_out);
    sum->adopted_out += memrt__load_acquire(&shard->adopted_out);
}

static void add_ins(const memrt__shard_t *shard, memrt__shard_t *sum)
{
    sum->alloc += memrt__load_relaxed(&shard->alloc);
    sum->mi_alloc += memrt__load_relaxed(&shard->mi_alloc);
    sum->bytes_in += memrt__load_relaxed(&shard->bytes_in);
    sum->held_in += memrt__load_relaxed(&shard->held_in);
    sum->adopted_in += memrt__load_relaxed(&shard->adopted_in);
    sum->realloc += memrt__load_relaxed(&shard->realloc);
    sum->failed += memrt__load_relaxed(&shard->failed);
}

typedef void (*add_fn)(const memrt__shard_t *shard, memrt__shard_t *sum);

static void add_chunk(const memrt__shard_t *chunk, add_fn add, memrt__shard_t *sum)
{
    for (size_t i = 0; chunk != NULL && i < MEMRT__CHUNK; i++) {
        add(&chunk[i], sum);
    }
}

static void add_thread(const memrt__thread_t *thread, add_fn add, walk_t *walk)
{
    if (walk->account == NULL) {
        for (size_t i = 0; i < MEMRT__ACCOUNTS / MEMRT__CHUNK; i++) {
            add_chunk(thread->chunks[i], add, &walk->sum);
        }
        return;
    }
    const memrt__shard_t *chunk = thread->chunks[walk->account->index / MEMRT__CHUNK];
    if (chunk != NULL) {
        add(&chunk[walk->account->index % MEMRT__CHUNK], &walk->sum);
    }
}

/// The shards that serve threads without a record: of the one account, or of all.
static void add_shared(add_fn add, walk_t *walk)
{
    if (walk->account != NULL) {
        add(walk->account->shared, &walk->sum);
        return;
    }
    for (memrt__account_t *a = memrt__account_first(); a != NULL; a = a->next) {
        add(a->shared, &walk->sum);
    }
}

static void add_everywhere(add_fn add, walk_t *walk)
{
    add_shared(add, walk);
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        add_thread(t, add, walk);
    }
}

static const memrt__gauge_t *gauge_of(const memrt__thread_t *thread, const walk_t *walk)
{
    if (walk->account == NULL) {
        return &thread->process;
    }
    const memrt__shard_t *chunk = thread->chunks[walk->account->index / MEMRT__CHUNK];
    return chunk == NULL ? NULL : &chunk[walk->account->index % MEMRT__CHUNK].gauge;
}

static void add_gauges(walk_t *walk)
{
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        const memrt__gauge_t *gauge = gauge_of(t, walk);
        if (gauge == NULL) {
            continue;
        }
        walk->threads++;
        walk->sum.gauge.pending += memrt__load_relaxed(&gauge->pending);
        walk->sum.gauge.rise =
            memrt__size_max(walk->sum.gauge.rise, memrt__load_relaxed(&gauge->rise));
    }
}

/// A difference of counters that were read while others count may come out below zero: then it is
/// 0.
static uint64_t above_zero(size_t difference)
{
    return (ptrdiff_t)difference > 0 ? difference : 0;
}

static const memrt__account_t *gauge_account(const memrt__account_t *account)
{
    return account == NULL ? &memrt__process : account;
}

/// The peak comes before the sums: while others work, these only grow, so that no more seems to
/// have been in use than was ever allocated.
static void read_peak(walk_t *walk)
{
    const memrt__account_t *account = gauge_account(walk->account);
    uint64_t highest = above_zero(memrt__load_acquire(&account->peak));
    size_t flushed = memrt__load_acquire(&account->flushed);
    add_gauges(walk);
    walk->peak = memrt__size_max(highest, above_zero(flushed + walk->sum.gauge.rise));
}

/// One reading. Returns the bytes that went out meanwhile: what is live seems by at most that much
/// more than it was.
static size_t read_once(const memrt__account_t *account, walk_t *walk)
{
    walk_t after = {.account = account};
    *walk = after;
    if (account == NULL) {
        walk->sum = after.sum = past;
    }
    read_peak(walk);
    add_everywhere(add_outs, walk);
    add_everywhere(add_ins, walk);
    add_everywhere(add_outs, &after);
    return after.sum.bytes_out - walk->sum.bytes_out;
}

#define READINGS 4

/// A reader that loses its processor in the middle sees much go out: of a few readings take the one
/// with the least. When nobody else is inside memrt the first one is exact and the last.
static void sum_up(walk_t *walk)
{
    const memrt__account_t *account = walk->account;
    size_t least = SIZE_MAX;
    memrt__lock(MEMRT__RANK_THREADS);
    for (int reading = 0; reading < READINGS && least != 0; reading++) {
        walk_t now;
        size_t went = read_once(account, &now);
        if (went < least) {
            least = went;
            *walk = now;
        }
    }
    memrt__unlock(MEMRT__RANK_THREADS);
}

/// One thread's gauge is exact. With more, each may hide or add up to a limit's worth.
static uint64_t peak_error(const memrt__account_t *account, const walk_t *walk)
{
    bool exact = walk->threads <= 1 && memrt__load_relaxed(&account->past_gauges) == 0;
    return exact ? 0 : walk->threads * (uint64_t)MEMRT__GAUGE_LIMIT;
}

void memrt__stats_read(const memrt__account_t *account, memrt_stats_t *out)
{
    walk_t walk = {.account = account};
    sum_up(&walk);
    const memrt__shard_t *sum = &walk.sum;
    out->alloc = sum->alloc;
    out->free = sum->free;
    out->mi_alloc = sum->mi_alloc;
    out->mi_free = sum->mi_free;
    out->realloc = sum->realloc;
    out->failed = sum->failed;
    out->live = above_zero(sum->bytes_in - sum->bytes_out);
    out->peak = memrt__size_max(walk.peak, out->live);
    out->peak_error = peak_error(gauge_account(account), &walk);
    out->total = sum->bytes_in;
    out->adopted = above_zero(sum->adopted_in - sum->adopted_out);
    out->reserved = above_zero(sum->held_in - sum->held_out);
}

void memrt__stats_reset_peak(memrt__account_t *account)
{
    memrt__account_t *shared = account == NULL ? &memrt__process : account;
    memrt__tally_t tally = memrt__tally(shared);
    if (tally.thread != NULL) {
        memrt__gauge_flush(account == NULL ? &tally.thread->process : &tally.shard->gauge, shared);
    }
    memrt_stats_t now;
    memrt__stats_read(account, &now);
    memrt__store_relaxed(&shared->peak, now.live);
}

bool memrt__stats_is_idle(const memrt__account_t *account)
{
    walk_t walk = {.account = account};
    sum_up(&walk);
    return walk.sum.alloc == walk.sum.free;
}

static void add_past(const memrt__shard_t *shard, memrt__shard_t *sum)
{
    add_outs(shard, sum);
    add_ins(shard, sum);
}

void memrt__stats_retire(memrt__account_t *account)
{
    memrt__lock(MEMRT__RANK_THREADS);
    walk_t walk = {.account = account};
    add_everywhere(add_past, &walk);
    add_past(&walk.sum, &past);
    memset(account->shared, 0, sizeof(*account->shared));
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        memrt__shard_t *chunk = t->chunks[account->index / MEMRT__CHUNK];
        if (chunk != NULL) {
            memset(&chunk[account->index % MEMRT__CHUNK], 0, sizeof(*chunk));
        }
    }
    memrt__account_leave(account);
    memrt__unlock(MEMRT__RANK_THREADS);
}
