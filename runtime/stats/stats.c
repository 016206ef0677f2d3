#include "runtime/stats/stats.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/lock.h"
#include "runtime/base/size.h"

/// What to add up: one account, or those of a level.
typedef struct walk {
    const memrt__account_t *account; ///< NULL: those of the level
    const memrt__level_t *level;
    memrt__shard_t sum;
    size_t rise;   ///< most that one gauge rose since it told
    size_t gauges; ///< shards that counted bytes
    uint64_t peak; ///< highest that the level and its gauges know of
    size_t sizes[MEMRT_SIZE_BINS];
} walk_t;

static void add_outs(const memrt__shard_t *shard, walk_t *walk)
{
    memrt__shard_t *sum = &walk->sum;
    for (size_t kind = 0; kind < MEMRT__KINDS; kind++) {
        sum->freed[kind] += memrt__load_acquire(&shard->freed[kind]);
    }
    sum->promoted_out += memrt__load_acquire(&shard->promoted_out);
    sum->bytes_out += memrt__load_acquire(&shard->bytes_out);
    sum->extra_out += memrt__load_acquire(&shard->extra_out);
    sum->adopted_out += memrt__load_acquire(&shard->adopted_out);
}

static void add_ins(const memrt__shard_t *shard, walk_t *walk)
{
    memrt__shard_t *sum = &walk->sum;
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

/// What a gauge rose, as signed. Its owner may tell meanwhile: then it shows less before or after,
/// and what it rose is in the peak.
static size_t rise_of(const memrt__shard_t *shard)
{
    size_t before = memrt__load_acquire(&shard->high);
    size_t told = memrt__load_acquire(&shard->told);
    size_t after = memrt__load_acquire(&shard->high);
    return ((ptrdiff_t)before < (ptrdiff_t)after ? before : after) - told;
}

static void add_gauge(const memrt__shard_t *shard, walk_t *walk)
{
    size_t rise = rise_of(shard);
    if (memrt__load_relaxed(&shard->bytes_in) == 0 && memrt__load_relaxed(&shard->bytes_out) == 0) {
        return;
    }
    walk->gauges++;
    if ((ptrdiff_t)rise > (ptrdiff_t)walk->rise) {
        walk->rise = rise;
    }
}

typedef void (*add_fn)(const memrt__shard_t *shard, walk_t *walk);

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
            add(shard, walk);
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
            add(a->shared, walk);
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
    walk->peak = memrt__size_max(highest, above_zero(flushed + walk->rise));
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

/// One gauge is exact. With more, each may hide a rise or a fall, of which the fall may be more.
static uint64_t peak_error(const walk_t *walk)
{
    bool exact = walk->gauges <= 1 && memrt__load_relaxed(&walk->level->past_gauges) == 0;
    return exact ? 0 : walk->gauges * (uint64_t)MEMRT__GAUGE_FALL;
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
    out->peak_error = peak_error(&walk);
    out->total = sum->bytes_in;
    out->adopted = above_zero(sum->adopted_in - sum->adopted_out);
    out->reserved = above_zero(reserved(sum));
}

/// The calling thread's gauges forget how high they were; others' keep theirs, within the error
/// that the peak states.
static void tell_own_gauges(const memrt__level_t *level)
{
    memrt__thread_t *self = memrt__self;
    memrt__lock(MEMRT__RANK_THREADS);
    for (memrt__account_t *a = memrt__account_first(); self != NULL && a != NULL; a = a->next) {
        memrt__shard_t *shard = memrt__thread_shard(self, a->index);
        if (shard != NULL && memrt__account_is_in(a, level)) {
            memrt__gauge_tell(shard, a);
        }
    }
    memrt__unlock(MEMRT__RANK_THREADS);
}

void memrt__stats_reset_peak(memrt__level_t *level)
{
    tell_own_gauges(level);
    memrt_stats_t now;
    memrt__stats_read(level, &now);
    memrt__store_relaxed(&level->peak, now.live);
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

static void add_sums(const memrt__shard_t *from, memrt__shard_t *to)
{
    walk_t walk = {.sum = *to};
    add_outs(from, &walk);
    add_ins(from, &walk);
    *to = walk.sum;
}

static void add_sizes(const memrt__shard_t *shard, walk_t *walk)
{
    for (size_t bin = 0; shard->sizes != NULL && bin < MEMRT_SIZE_BINS; bin++) {
        walk->sizes[bin] += memrt__load_relaxed(&shard->sizes[bin]);
    }
}

void memrt__stats_sizes(const memrt__level_t *level, uint64_t *out)
{
    walk_t walk = {.level = level};
    memrt__lock(MEMRT__RANK_THREADS);
    memcpy(walk.sizes, level->sizes, sizeof(walk.sizes));
    add_everywhere(add_sizes, &walk);
    memrt__unlock(MEMRT__RANK_THREADS);
    for (size_t bin = 0; bin < MEMRT_SIZE_BINS; bin++) {
        out[bin] = walk.sizes[bin];
    }
}

static void add_told(const memrt__shard_t *shard, walk_t *walk)
{
    walk->sum.told += memrt__load_relaxed(&shard->told);
}

/// Nothing of the account is in use, so what its gauges told and did not tell adds up to nothing:
/// the levels hear the rest.
static void move_to_past(memrt__level_t *level, const walk_t *walk)
{
    for (; level != NULL; level = level->up) {
        add_sums(&walk->sum, &level->past);
        memrt__fetch_add_relaxed(&level->flushed, (size_t)0 - walk->sum.told);
        for (size_t bin = 0; bin < MEMRT_SIZE_BINS; bin++) {
            level->sizes[bin] += walk->sizes[bin];
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
    memrt__lock(MEMRT__RANK_THREADS);
    walk_t walk = {.account = account};
    read_account(&walk);
    add_threads(account, add_told, &walk);
    add_everywhere(add_sizes, &walk);
    move_to_past(account->policy, &walk);
    move_to_past(account->scope, &walk);
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
