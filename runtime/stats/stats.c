#include "runtime/stats/stats.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/lock.h"
#include "runtime/base/size.h"

/// What the accounts of a level add up to.
typedef struct walk {
    const memrt__level_t *level;
    memrt__shard_t sums[MEMRT__ORIGINS];
    uint64_t peak; ///< highest that the level and its gauges know of
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
    sum->exported_out += memrt__load_acquire(&shard->exported_out);
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
    sum->exported_in += memrt__load_relaxed(&shard->exported_in);
    sum->realloc += memrt__load_relaxed(&shard->realloc);
    sum->failed += memrt__load_relaxed(&shard->failed);
}

typedef void (*add_fn)(const memrt__shard_t *shard, memrt__shard_t *sum);

static void add_threads(const memrt__account_t *account, add_fn add, memrt__shard_t *sum)
{
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        const memrt__shard_t *shard = memrt__thread_shard(t, account->index);
        if (shard != NULL) {
            add(shard, sum);
        }
    }
}

/// Threads without a record count in the shared shards, which have no gauge.
static void add_account(const memrt__account_t *account, add_fn add, memrt__shard_t *sum)
{
    add(account->shared, sum);
    add_threads(account, add, sum);
}

static void add_everywhere(add_fn add, walk_t *walk)
{
    for (memrt__account_t *a = memrt__account_first(); a != NULL; a = a->next) {
        if (memrt__account_is_in(a, walk->level)) {
            add_account(a, add, &walk->sums[a->origin]);
        }
    }
}

/// `rise`, or that of a gauge of the account that rose more since it told.
static size_t higher_rise(const memrt__account_t *account, size_t rise)
{
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        const memrt__shard_t *shard = memrt__thread_shard(t, account->index);
        size_t other = shard == NULL ? 0 : memrt__gauge_rise(shard);
        rise = (ptrdiff_t)other > (ptrdiff_t)rise ? other : rise;
    }
    return rise;
}

static size_t highest_rise(const memrt__level_t *level)
{
    size_t rise = 0;
    for (memrt__account_t *a = memrt__account_first(); a != NULL; a = a->next) {
        if (memrt__account_is_in(a, level)) {
            rise = higher_rise(a, rise);
        }
    }
    return rise;
}

/// A difference of counters that were read while others count may come out below zero: then it is
/// 0.
static uint64_t above_zero(size_t difference)
{
    return (ptrdiff_t)difference > 0 ? difference : 0;
}

static size_t falls_of(const memrt__account_t *account)
{
    size_t falls = memrt__load_acquire(&account->shared->falls);
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        const memrt__shard_t *shard = memrt__thread_shard(t, account->index);
        falls += shard == NULL ? 0 : memrt__load_acquire(&shard->falls);
    }
    return falls;
}

/// How often the level was told that less is in use.
static size_t all_falls(const memrt__level_t *level)
{
    size_t falls = 0;
    for (memrt__account_t *a = memrt__account_first(); a != NULL; a = a->next) {
        falls += memrt__account_is_in(a, level) ? falls_of(a) : 0;
    }
    return falls;
}

/// What a level was told, and more by the highest rise of a gauge. False where it was told of less
/// in between: what went out may be in the one and what came in after it in the other.
static bool read_risen(const memrt__level_t *level, uint64_t *out)
{
    size_t falls = all_falls(level);
    size_t flushed = memrt__load_acquire(&level->flushed);
    *out = above_zero(flushed + highest_rise(level));
    return all_falls(level) == falls;
}

#define LOOKS 8

/// The peak comes before the sums: while others work, these only grow, so that no more seems to
/// have been in use than was ever allocated. What a level was told comes before the gauges, and
/// the peak after them: a rise that a gauge just told is in one of the three, and not in two.
/// When all looks were disturbed, what rises just now, and was not told yet, is missing.
static void read_peak(walk_t *walk)
{
    const memrt__level_t *level = walk->level;
    uint64_t risen = 0;
    bool calm = false;
    for (int look = 0; look < LOOKS && !calm; look++) {
        calm = read_risen(level, &risen);
    }
    uint64_t highest = above_zero(memrt__load_acquire(&level->peak));
    walk->peak = calm ? memrt__size_max(risen, highest) : highest;
}

/// One reading. Returns the bytes that went out meanwhile: what is live seems by at most that much
/// more than it was.
static size_t read_once(const memrt__level_t *level, walk_t *walk)
{
    walk_t after = {.level = level};
    add_outs(&level->past, &after.sums[MEMRT__OWN]);
    *walk = after;
    add_ins(&level->past, &walk->sums[MEMRT__OWN]);
    read_peak(walk);
    add_everywhere(add_outs, walk);
    add_everywhere(add_ins, walk);
    add_everywhere(add_outs, &after);
    size_t went = 0;
    for (size_t origin = 0; origin < MEMRT__ORIGINS; origin++) {
        went += after.sums[origin].bytes_out - walk->sums[origin].bytes_out;
    }
    return went;
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

static uint64_t live_bytes(const memrt__shard_t *sum)
{
    return above_zero(sum->bytes_in - sum->bytes_out);
}

/// What threads were in the middle of at a fork may have left inherited deaths without their
/// births: no part of `live` is below zero, so that none takes from another.
static void tell_origins(const walk_t *walk, memrt_stats_t *out)
{
    const memrt__shard_t *inherited = &walk->sums[MEMRT__INHERITED];
    out->inherited = live_bytes(inherited);
    out->inherited_blocks = above_zero(sum_of(inherited->made) - sum_of(inherited->freed));
    out->inherited_error = live_bytes(&walk->sums[MEMRT__MIXED]);
    out->live = live_bytes(&walk->sums[MEMRT__OWN]) + out->inherited + out->inherited_error;
}

/// The peak is never below what is live. Where it is exact it is the better of the two: while
/// others work, sums may have more than ever was in use at once.
static void tell_peak(uint64_t peak, memrt_stats_t *out)
{
    if (out->peak_error == 0) {
        out->live = memrt__size_min(out->live, peak);
        out->inherited = memrt__size_min(out->inherited, out->live);
    }
    out->peak = memrt__size_max(peak, out->live);
}

void memrt__stats_read(const memrt__level_t *level, memrt_stats_t *out)
{
    walk_t walk = {.level = level};
    sum_up(&walk);
    tell_origins(&walk, out);
    memrt__shard_t all = {0};
    for (size_t origin = 0; origin < MEMRT__ORIGINS; origin++) {
        add_outs(&walk.sums[origin], &all);
        add_ins(&walk.sums[origin], &all);
    }
    const memrt__shard_t *sum = &all;
    out->alloc = sum_of(sum->made);
    out->free = sum_of(sum->freed);
    out->mi_alloc = meminfos(sum->made) + sum->promoted_in;
    out->mi_free = meminfos(sum->freed) + sum->promoted_out;
    out->realloc = sum->realloc;
    out->failed = sum->failed;
    out->peak_error = peak_error(level);
    tell_peak(walk.peak, out);
    out->total = sum->bytes_in;
    out->adopted = above_zero(sum->adopted_in - sum->adopted_out);
    out->exported = above_zero(sum->exported_in - sum->exported_out);
    out->reserved = above_zero(reserved(sum));
}

/// Whether nobody but the caller can be changing the record, under the lock of rank THREADS.
static bool is_free(const memrt__thread_t *thread)
{
    return thread == memrt__self || !thread->in_use;
}

static void rest_all(memrt__account_t *account)
{
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        memrt__shard_t *shard = memrt__thread_shard(t, account->index);
        if (shard != NULL && is_free(t)) {
            memrt__gauge_rest(shard, account);
        }
    }
}

void memrt__stats_rest_gauges(void)
{
    memrt__lock(MEMRT__RANK_THREADS);
    for (memrt__account_t *a = memrt__account_first(); a != NULL; a = a->next) {
        rest_all(a);
    }
    memrt__unlock(MEMRT__RANK_THREADS);
}

/// Whether the gauge shows a rise that is over.
static bool was_higher(const memrt__shard_t *shard)
{
    size_t net = memrt__load_relaxed(&shard->bytes_in) - memrt__load_relaxed(&shard->bytes_out);
    size_t now = net - memrt__load_relaxed(&shard->told);
    return (ptrdiff_t)memrt__gauge_rise(shard) > (ptrdiff_t)now;
}

/// What gauges of other threads rose before they cannot be made to forget.
static void admit_rises(const memrt__account_t *account, memrt__level_t *level)
{
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        const memrt__shard_t *shard = memrt__thread_shard(t, account->index);
        if (shard != NULL && !is_free(t) && was_higher(shard)) {
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
            rest_all(a);
            admit_rises(a, level);
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
static void read_account(const memrt__account_t *account, memrt__shard_t *sum)
{
    memrt__lock(MEMRT__RANK_THREADS);
    add_account(account, add_outs, sum);
    add_account(account, add_ins, sum);
    memrt__unlock(MEMRT__RANK_THREADS);
}

bool memrt__stats_is_idle(const memrt__account_t *account)
{
    memrt__shard_t sum = {0};
    read_account(account, &sum);
    return MEMRT_COUNTERS && sum_of(sum.made) == sum_of(sum.freed);
}

bool memrt__stats_is_settled(const memrt__account_t *account)
{
    memrt__shard_t sum = {0};
    read_account(account, &sum);
    size_t left = (sum_of(sum.made) - sum_of(sum.freed)) | (sum.bytes_in - sum.bytes_out) |
                  (sum.promoted_in - sum.promoted_out) | (sum.extra_in - sum.extra_out) |
                  (sum.adopted_in - sum.adopted_out) | (sum.exported_in - sum.exported_out);
    return left == 0;
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
    memrt__shard_t sum = {.sizes = sizes};
    memrt__lock(MEMRT__RANK_THREADS);
    memcpy(sizes, level->sizes, sizeof(sizes));
    for (memrt__account_t *a = memrt__account_first(); a != NULL; a = a->next) {
        if (memrt__account_is_in(a, level)) {
            add_account(a, add_sizes, &sum);
        }
    }
    memrt__unlock(MEMRT__RANK_THREADS);
    for (size_t bin = 0; bin < MEMRT_SIZE_BINS; bin++) {
        out[bin] = sizes[bin];
    }
}

/// Nothing is in use: what came in went out. Of what was inherited, a fork may have caught a thread
/// between counting the one and the other.
static void settle(memrt__shard_t *sum)
{
    sum->bytes_out = sum->bytes_in;
    sum->promoted_out = sum->promoted_in;
    sum->extra_out = sum->extra_in;
    sum->adopted_out = sum->adopted_in;
    sum->exported_out = sum->exported_in;
}

/// `left`: bytes that the levels were told of and that are not in use.
static void move_to_past(memrt__level_t *level, const memrt__shard_t *sum, size_t left)
{
    for (; level != NULL; level = level->up) {
        memrt__fetch_add_relaxed(&level->flushed, (size_t)0 - left);
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
    memrt__shard_t sum = {.sizes = sizes};
    memrt__lock(MEMRT__RANK_THREADS);
    end_gauges(account);
    add_account(account, add_outs, &sum);
    add_account(account, add_ins, &sum);
    add_account(account, add_sizes, &sum);
    size_t left = sum.bytes_in - sum.bytes_out;
    settle(&sum);
    move_to_past(account->policy, &sum, left);
    move_to_past(account->scope, &sum, left);
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
