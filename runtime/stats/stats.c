#include "runtime/stats/stats.h"

#include <string.h>

#include "runtime/base/lock.h"
#include "runtime/base/size.h"

/// Counts of accounts that are gone. Under the lock of rank THREADS.
static memrt__shard_t past;

/// What to add up: shards of one index, or of all.
typedef struct walk {
    const memrt__account_t *account; ///< NULL: all
    memrt__shard_t sum;
    size_t rise;   ///< most that one gauge rose since it told
    size_t gauges; ///< shards that counted bytes
    uint64_t peak; ///< highest that the account and its gauges know of
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

static void add_chunk(const memrt__shard_t *chunk, add_fn add, walk_t *walk)
{
    for (size_t i = 0; chunk != NULL && i < MEMRT__CHUNK; i++) {
        add(&chunk[i], walk);
    }
}

static void add_thread(const memrt__thread_t *thread, add_fn add, walk_t *walk)
{
    if (walk->account != NULL) {
        const memrt__shard_t *shard = memrt__thread_shard(thread, walk->account->index);
        if (shard != NULL) {
            add(shard, walk);
        }
        return;
    }
    add(&thread->first, walk);
    for (size_t i = 0; i < MEMRT__ACCOUNTS / MEMRT__CHUNK; i++) {
        add_chunk(thread->chunks[i], add, walk);
    }
}

static void add_threads(add_fn add, walk_t *walk)
{
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        add_thread(t, add, walk);
    }
}

/// The shards that serve threads without a record: of the one account, or of all.
static void add_shared(add_fn add, walk_t *walk)
{
    if (walk->account != NULL) {
        add(walk->account->shared, walk);
        return;
    }
    for (memrt__account_t *a = memrt__account_first(); a != NULL; a = a->next) {
        add(a->shared, walk);
    }
}

static void add_everywhere(add_fn add, walk_t *walk)
{
    add_shared(add, walk);
    add_threads(add, walk);
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
/// have been in use than was ever allocated. What an account was told comes before the gauges, and
/// the peak after them: a rise that a gauge just told is in one of the three, and not in two.
static void read_peak(walk_t *walk)
{
    const memrt__account_t *account = gauge_account(walk->account);
    size_t flushed = memrt__load_acquire(&account->flushed);
    add_threads(add_gauge, walk);
    uint64_t highest = above_zero(memrt__load_acquire(&account->peak));
    walk->peak = memrt__size_max(highest, above_zero(flushed + walk->rise));
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

/// One gauge is exact. With more, each may hide a rise or a fall, of which the fall may be more.
static uint64_t peak_error(const memrt__account_t *account, const walk_t *walk)
{
    bool exact = walk->gauges <= 1 && memrt__load_relaxed(&account->past_gauges) == 0;
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

void memrt__stats_read(const memrt__account_t *account, memrt_stats_t *out)
{
    walk_t walk = {.account = account};
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
    out->peak_error = peak_error(gauge_account(account), &walk);
    out->total = sum->bytes_in;
    out->adopted = above_zero(sum->adopted_in - sum->adopted_out);
    out->reserved = above_zero(reserved(sum));
}

/// The calling thread's gauges forget how high they were; others' keep theirs, within the error
/// that the peak states.
static void tell_own_gauges(const memrt__account_t *only)
{
    memrt__thread_t *self = memrt__self;
    memrt__lock(MEMRT__RANK_THREADS);
    for (memrt__account_t *a = memrt__account_first(); self != NULL && a != NULL; a = a->next) {
        memrt__shard_t *shard = memrt__thread_shard(self, a->index);
        if (shard != NULL && (only == NULL || only == a)) {
            memrt__gauge_tell(shard, a);
        }
    }
    memrt__unlock(MEMRT__RANK_THREADS);
}

void memrt__stats_reset_peak(memrt__account_t *account)
{
    tell_own_gauges(account);
    memrt_stats_t now;
    memrt__stats_read(account, &now);
    memrt__store_relaxed(&(account == NULL ? &memrt__process : account)->peak, now.live);
}

bool memrt__stats_is_idle(const memrt__account_t *account)
{
    walk_t walk = {.account = account};
    sum_up(&walk);
    return MEMRT_COUNTERS && sum_of(walk.sum.made) == sum_of(walk.sum.freed);
}

static void add_past(const memrt__shard_t *shard, walk_t *walk)
{
    add_outs(shard, walk);
    add_ins(shard, walk);
}

static void add_sums(const memrt__shard_t *from, memrt__shard_t *to)
{
    walk_t walk = {.sum = *to};
    add_outs(from, &walk);
    add_ins(from, &walk);
    *to = walk.sum;
}

/// Nothing of the account is in use, so what its gauges told and did not tell adds up to nothing:
/// the process hears the rest.
void memrt__stats_retire(memrt__account_t *account)
{
    memrt__lock(MEMRT__RANK_THREADS);
    walk_t walk = {.account = account};
    add_everywhere(add_past, &walk);
    add_sums(&walk.sum, &past);
    memrt__fetch_add_relaxed(&memrt__process.flushed, (size_t)0 - account->flushed);
    memset(account->shared, 0, sizeof(*account->shared));
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        memrt__shard_t *shard = memrt__thread_shard(t, account->index);
        if (shard != NULL) {
            memset(shard, 0, sizeof(*shard));
        }
    }
    memrt__account_leave(account);
    memrt__unlock(MEMRT__RANK_THREADS);
}
