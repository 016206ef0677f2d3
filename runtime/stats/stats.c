#include "runtime/stats/stats.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/lock.h"
#include "runtime/base/size.h"

/// What to add up: one account, or those of a level.
typedef struct walk {
    const memrt__account_t *account; ///< NULL: those of the level
    const memrt__level_t *level;
    memrt__shard_t sum; ///< its `high`: most that one gauge rose since it told
    uint64_t peak;      ///< highest that the level and its gauges know of
} walk_t;

static void add_outs(const memrt__shard_t *shard, memrt__shard_t *sum)
{
    for (size_t kind = 0; kind < MEMRT__KINDS; kind++) {
        sum->freed[kind] += memrt__load_acquire(&shard->freed[kind]);
    }
    sum->promoted_out += memrt__load_acquire(&shard->promoted_out);
    sum->bytes_out += memrt__load_acquire(&shard->bytes_out);
    sum->extra_out += memrt__load_acquire(&shard->extra_out);
    sum->adopted_out += memrt__load_acquire(&shard->adopted_out);
}

static void add_ins(const memrt__shard_t *shard, memrt__shard_t *sum)
{
    for (size_t kind = 0; kind < MEMRT__KINDS; kind++) {
        sum->made[kind] += memrt__load_relaxed(&shard->made[kind]);
    }
    sum->promoted_in += memrt__load_relaxed(&shard->promoted_in);
    sum->bytes_in += memrt__load_relaxed(&shard->bytes_in);
    sum->extra_in += memrt__load_relaxed(&shard->extra_in);
    sum->adopted_in += memrt__load_relaxed(&shard->adopted_in);
    sum->realloc += memrt__load_relaxed(&shard->realloc);
    sum->failed += memrt__load_relaxed(&shard->failed);
}

static void add_gauge(const memrt__shard_t *shard, memrt__shard_t *sum)
{
    size_t rise = memrt__gauge_rise(shard);
    if ((ptrdiff_t)rise > (ptrdiff_t)sum->high) {
        sum->high = rise;
    }
}

typedef void (*add_fn)(const memrt__shard_t *shard, memrt__shard_t *sum);

static bool is_wanted(const walk_t *walk, const memrt__account_t *account)
{
    return walk->account != NULL ? account == walk->account
                                 : memrt__account_is_in(account, walk->level);
}

static void add_threads(const memrt__account_t *account, add_fn add, walk_t *walk)
{
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        const memrt__shard_t *shard = memrt__thread_shard(t, account->index);
        if (shard != NULL) {
            add(shard, &walk->sum);
        }
    }
}

static void add_gauges(walk_t *walk)
{
    for (memrt__account_t *a = memrt__account_first(); a != NULL; a = a->next) {
        if (is_wanted(walk, a)) {
            add_threads(a, add_gauge, walk);
        }
    }
}

/// Threads without a record count in the shared shards.
static void add_everywhere(add_fn add, walk_t *walk)
{
    for (memrt__account_t *a = memrt__account_first(); a != NULL; a = a->next) {
        if (is_wanted(walk, a)) {
            add(a->shared, &walk->sum);
            add_threads(a, add, walk);
        }
    }
}

/// A difference of counters that were read while others count may come out below zero: then it is
/// 0.
static uint64_t above_zero(size_t difference)
{
    return (ptrdiff_t)difference > 0 ? difference : 0;
}

/// The peak comes before the sums: while others work, these only grow, so that no more seems to
/// have been in use than was ever allocated. What a level was told comes before the gauges, and
/// the peak after them: a rise that a gauge just told is in one of the three, and not in two.
static void read_peak(walk_t *walk)
{
    const memrt__level_t *level = walk->level;
    size_t flushed = memrt__load_acquire(&level->flushed);
    add_gauges(walk);
    uint64_t highest = above_zero(memrt__load_acquire(&level->peak));
    walk->peak = memrt__size_max(highest, above_zero(flushed + walk->sum.high));
}

/// One reading. Returns the bytes that went out meanwhile: what is live seems by at most that much
/// more than it was.
static size_t read_once(const memrt__level_t *level, walk_t *walk)
{
    walk_t after = {.level = level, .sum = level->past};
    *walk = after;
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
    const memrt__level_t *level = walk->level;
    size_t least = SIZE_MAX;
    memrt__lock(MEMRT__RANK_THREADS);
    for (int reading = 0; reading < READINGS && least != 0; reading++) {
        walk_t now;
        size_t went = read_once(level, &now);
        if (went < least) {
            least = went;
            *walk = now;
        }
    }
    memrt__unlock(MEMRT__RANK_THREADS);
}

/// One gauge alone is exact. With more, each may hide a rise and a fall.
static uint64_t peak_error(const memrt__level_t *level)
{
    uint64_t gauges = memrt__load_relaxed(&level->most_gauges);
    bool exact = gauges == 1 && memrt__load_relaxed(&level->past_gauges) == 0;
    return exact ? 0 : gauges * (uint64_t)MEMRT__GAUGE_ERROR;
}

static size_t sum_of(const size_t *by_kind)
{
    size_t sum = 0;
    for (size_t kind = 0; kind < MEMRT__KINDS; kind++) {
        sum += by_kind[kind];
    }
    return sum;
}

/// Of blocks by kind, those that are MemInfos from their birth.
static size_t meminfos(const size_t *by_kind)
{
    return sum_of(by_kind) - by_kind[MEMRT_KIND_BLOCK] - by_kind[MEMRT__KIND_TINY];
}

/// Every block has a header and what it holds of data; `extra` is what goes beyond that.
static size_t reserved(const memrt__shard_t *sum)
{
    size_t blocks = sum_of(sum->made) - sum_of(sum->freed);
    size_t tiny = sum->made[MEMRT__KIND_TINY] - sum->freed[MEMRT__KIND_TINY];
    return blocks * MEMRT_HEADER_SIZE - tiny * MEMRT__TINY_SAVES +
           (sum->bytes_in - sum->bytes_out) + (sum->extra_in - sum->extra_out);
}

void memrt__stats_read(const memrt__level_t *level, memrt_stats_t *out)
{
    walk_t walk = {.level = level};
    sum_up(&walk);
    const memrt__shard_t *sum = &walk.sum;
    out->alloc = sum_of(sum->made);
    out->free = sum_of(sum->freed);
    out->mi_alloc = meminfos(sum->made) + sum->promoted_in;
    out->mi_free = meminfos(sum->freed) + sum->promoted_out;
    out->realloc = sum->realloc;
    out->failed = sum->failed;
    out->live = above_zero(sum->bytes_in - sum->bytes_out);
    out->peak = memrt__size_max(walk.peak, out->live);
    out->peak_error = peak_error(level);
    out->total = sum->bytes_in;
    out->adopted = above_zero(sum->adopted_in - sum->adopted_out);
    out->reserved = above_zero(reserved(sum));
}

/// Whether the gauge shows a rise that is over.
static bool was_higher(const memrt__shard_t *shard)
{
    size_t net = memrt__load_relaxed(&shard->bytes_in) - memrt__load_relaxed(&shard->bytes_out);
    size_t now = net - memrt__load_relaxed(&shard->told);
    return (ptrdiff_t)memrt__gauge_rise(shard) > (ptrdiff_t)now;
}

/// The gauges of an account forget how high they were; those of other threads that run cannot be
/// made to. Under the lock of rank THREADS, so that no thread takes a record that waits.
static void rest_gauges(memrt__account_t *account, memrt__level_t *level)
{
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        memrt__shard_t *shard = memrt__thread_shard(t, account->index);
        if (shard == NULL) {
            continue;
        }
        if (t == memrt__self || !t->in_use) {
            memrt__gauge_rest(shard, account);
        } else if (was_higher(shard)) {
            memrt__store_relaxed(&level->past_gauges, 1);
        }
    }
}

/// What is kept begins at zero and is raised from there, so that nothing is lost of what others
/// tell meanwhile.
void memrt__stats_reset_peak(memrt__level_t *level)
{
    memrt__lock(MEMRT__RANK_THREADS);
    memrt__store_relaxed(&level->past_gauges, 0);
    for (memrt__account_t *a = memrt__account_first(); a != NULL; a = a->next) {
        if (memrt__account_is_in(a, level)) {
            rest_gauges(a, level);
        }
    }
    memrt__unlock(MEMRT__RANK_THREADS);
    memrt__store_relaxed(&level->peak, 0);
    memrt__store_relaxed(&level->most_gauges, 0);
    memrt__raise_release(&level->most_gauges, memrt__load_relaxed(&level->gauges));
    memrt_stats_t now;
    memrt__stats_read(level, &now);
    memrt__raise_release(&level->peak, now.live);
}

/// What one account counted, in the order in which it can be read while others count.
static void read_account(walk_t *walk)
{
    add_everywhere(add_outs, walk);
    add_everywhere(add_ins, walk);
}

bool memrt__stats_is_idle(const memrt__account_t *account)
{
    walk_t walk = {.account = account};
    memrt__lock(MEMRT__RANK_THREADS);
    read_account(&walk);
    memrt__unlock(MEMRT__RANK_THREADS);
    return MEMRT_COUNTERS && sum_of(walk.sum.made) == sum_of(walk.sum.freed);
}

static void add_sizes(const memrt__shard_t *shard, memrt__shard_t *sum)
{
    for (size_t bin = 0; shard->sizes != NULL && bin < MEMRT_SIZE_BINS; bin++) {
        sum->sizes[bin] += memrt__load_relaxed(&shard->sizes[bin]);
    }
}

void memrt__stats_sizes(const memrt__level_t *level, uint64_t *out)
{
    size_t sizes[MEMRT_SIZE_BINS];
    walk_t walk = {.level = level, .sum.sizes = sizes};
    memrt__lock(MEMRT__RANK_THREADS);
    memcpy(sizes, level->sizes, sizeof(sizes));
    add_everywhere(add_sizes, &walk);
    memrt__unlock(MEMRT__RANK_THREADS);
    for (size_t bin = 0; bin < MEMRT_SIZE_BINS; bin++) {
        out[bin] = sizes[bin];
    }
}

static void move_to_past(memrt__level_t *level, const memrt__shard_t *sum)
{
    for (; level != NULL; level = level->up) {
        add_outs(sum, &level->past);
        add_ins(sum, &level->past);
        for (size_t bin = 0; bin < MEMRT_SIZE_BINS; bin++) {
            level->sizes[bin] += sum->sizes[bin];
        }
    }
}

/// Nothing of the account is in use: when its gauges told all, it was told as nothing.
static void end_gauges(memrt__account_t *account)
{
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        memrt__shard_t *shard = memrt__thread_shard(t, account->index);
        if (shard != NULL) {
            memrt__gauge_rest(shard, account);
        }
    }
}

static void clear(memrt__shard_t *shard)
{
    free(shard->sizes);
    memset(shard, 0, sizeof(*shard));
}

void memrt__stats_retire(memrt__account_t *account)
{
    size_t sizes[MEMRT_SIZE_BINS] = {0};
    walk_t walk = {.account = account, .sum.sizes = sizes};
    memrt__lock(MEMRT__RANK_THREADS);
    end_gauges(account);
    read_account(&walk);
    add_everywhere(add_sizes, &walk);
    move_to_past(account->policy, &walk.sum);
    move_to_past(account->scope, &walk.sum);
    memset(account->shared, 0, sizeof(*account->shared));
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        memrt__shard_t *shard = memrt__thread_shard(t, account->index);
        if (shard != NULL) {
            clear(shard);
        }
    }
    memrt__account_leave(account);
    memrt__unlock(MEMRT__RANK_THREADS);
}
