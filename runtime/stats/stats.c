#include "runtime/stats/stats.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/size.h"
#include "runtime/os/lock.h"
#include "runtime/stats/allowance.h"
#include "runtime/stats/gauges.h"
#include "runtime/stats/peak.h"
#include "runtime/stats/shard_sums.h"

/// Sums over the accounts of an aggregate.
typedef struct walk {
    const memrt__level_t *level;
    memrt__sums_t sums[MEMRT__ORIGINS];
    memrt__peak_t peak;
} walk_t;

static void add_all_accounts(memrt__shard_add_fn add, walk_t *walk)
{
    for (memrt__account_t *a = memrt__account_first(); a != NULL; a = a->next) {
        if (memrt__account_is_in(a, walk->level)) {
            memrt__shard_sums_add_account(a, add, &walk->sums[a->origin]);
        }
    }
}

/// Return the bytes freed between two readings. The earlier reading may include a block that its
/// owner has not counted as freed yet, so the difference may be negative; then the result is 0.
static uint64_t count_freed_between(const walk_t *earlier, const walk_t *later)
{
    size_t freed = 0;
    for (size_t origin = 0; origin < MEMRT__ORIGINS; origin++) {
        freed += later->sums[origin].bytes_out - earlier->sums[origin].bytes_out;
    }
    return memrt__size_at_least_zero(freed);
}

/// Read all counters once. Returns the bytes freed during the reading: the maximum by which the
/// live bytes come out too high.
static uint64_t read_counters(const memrt__level_t *level, walk_t *walk)
{
    walk_t after = {.level = level};
    memrt__shard_sums_add(&level->past, &after.sums[MEMRT__OWN]);
    *walk = after;
    memrt__peak_read(level, &walk->peak);
    add_all_accounts(memrt__shard_sums_add_out, walk);
    add_all_accounts(memrt__shard_sums_add_in, walk);
    add_all_accounts(memrt__shard_sums_add_out, &after);
    return count_freed_between(walk, &after);
}

#define READINGS 4

/// Fill `walk` with the best of several readings: the one with the fewest bytes freed meanwhile. A
/// reader that loses its processor in the middle of a reading misses many frees. When no other
/// thread is inside memrt, the first reading is exact and ends the loop.
static void read_best_sums(walk_t *walk)
{
    const memrt__level_t *level = walk->level;
    uint64_t least = UINT64_MAX;
    MEMRT__ASSERT(level != NULL);
    MEMRT__ASSERT_HELD(MEMRT__RANK_THREADS);
    for (int reading = 0; reading < READINGS && least != 0; reading++) {
        walk_t now;
        uint64_t freed_meanwhile = read_counters(level, &now);
        if (freed_meanwhile < least) {
            least = freed_meanwhile;
            *walk = now;
        }
    }
}

/// Return the number of blocks, by kind, that were allocated as MemInfos.
static size_t count_meminfos(const size_t *by_kind)
{
    return memrt__shard_sums_kinds(by_kind) - by_kind[MEMRT_KIND_BLOCK] - by_kind[MEMRT__KIND_TINY];
}

/// Return the bytes taken from allocators for live blocks. Each block has a header and its data;
/// `extra` counts the bytes beyond header and data.
static size_t compute_reserved_bytes(const memrt__sums_t *sum)
{
    size_t blocks = memrt__shard_sums_kinds(sum->made) - memrt__shard_sums_kinds(sum->freed);
    size_t tiny = sum->made[MEMRT__KIND_TINY] - sum->freed[MEMRT__KIND_TINY];
    return blocks * MEMRT_HEADER_SIZE - tiny * MEMRT__TINY_SAVES +
           (sum->bytes_in - sum->bytes_out) + (sum->extra_in - sum->extra_out);
}

static uint64_t compute_live_bytes(const memrt__sums_t *sum)
{
    return memrt__size_at_least_zero(sum->bytes_in - sum->bytes_out);
}

/// Set the live and inherited figures. A fork may have interrupted a parent thread, so the child
/// may have inherited frees without their allocations. Each part of `live` is at least 0, so no
/// part reduces another.
static void set_origin_figures(const walk_t *walk, memrt_stats_t *out)
{
    const memrt__sums_t *inherited = &walk->sums[MEMRT__FORK_ACCOUNT];
    out->inherited = compute_live_bytes(inherited);
    out->inherited_blocks = memrt__size_at_least_zero(memrt__shard_sums_kinds(inherited->made) -
                                                      memrt__shard_sums_kinds(inherited->freed));
    out->inherited_error = compute_live_bytes(&walk->sums[MEMRT__MIXED]);
    out->live = compute_live_bytes(&walk->sums[MEMRT__OWN]) + out->inherited + out->inherited_error;
}

/// Set the peak, which is never below the live bytes. The sums may exceed the bytes that were ever
/// in use at once, while other threads work. So the live bytes are limited to the peak, plus the
/// rises that gauges may have left unreported.
static void set_peak_figures(const memrt__peak_t *peak, memrt_stats_t *out)
{
    out->peak_error = peak->error;
    out->live = memrt__size_min(out->live, peak->bytes + peak->error / MEMRT__GAUGE_PARTS);
    out->inherited = memrt__size_min(out->inherited, out->live);
    out->peak = memrt__size_max(peak->bytes, out->live);
    MEMRT__ASSERT(out->live >= out->inherited);
}

void memrt__stats_read(const memrt__level_t *level, memrt_stats_t *out)
{
    memrt__lock(MEMRT__RANK_THREADS);
    memrt__stats_read_locked(level, out);
    memrt__unlock(MEMRT__RANK_THREADS);
}

void memrt__stats_read_locked(const memrt__level_t *level, memrt_stats_t *out)
{
    walk_t walk = {.level = level};
    read_best_sums(&walk);
    set_origin_figures(&walk, out);
    memrt__sums_t all = {0};
    for (size_t origin = 0; origin < MEMRT__ORIGINS; origin++) {
        memrt__shard_sums_add(&walk.sums[origin], &all);
    }
    const memrt__sums_t *sum = &all;
    out->alloc = memrt__shard_sums_kinds(sum->made);
    out->free = memrt__shard_sums_kinds(sum->freed);
    out->mi_alloc = count_meminfos(sum->made) + sum->promoted_in;
    out->mi_free = count_meminfos(sum->freed) + sum->promoted_out;
    out->realloc = sum->realloc;
    out->failed = sum->failed;
    set_peak_figures(&walk.peak, out);
    out->total = sum->bytes_in;
    out->adopted = memrt__size_at_least_zero(sum->adopted_in - sum->adopted_out);
    out->exported = memrt__size_at_least_zero(sum->exported_in - sum->exported_out);
    out->reserved = memrt__size_at_least_zero(compute_reserved_bytes(sum));
}

typedef void (*account_in_level_fn)(memrt__account_t *account, memrt__level_t *level);

/// Under the lock of rank THREADS.
static void visit_accounts_in_level(memrt__level_t *level, account_in_level_fn act)
{
    for (memrt__account_t *a = memrt__account_first(); a != NULL; a = a->next) {
        if (memrt__account_is_in(a, level)) {
            act(a, level);
        }
    }
}

static void rest_account(memrt__account_t *account, memrt__level_t *level)
{
    (void)level;
    memrt__gauges_rest_account(account);
}

/// Set the peak to 0 first, then raise the peak to the live bytes. So reports of other threads
/// during the reset are not lost. The gauges of other threads are examined after the peak is 0: a
/// later report cannot refer to the earlier peak without a mark of its own.
void memrt__stats_reset_peak(memrt__level_t *level)
{
    memrt__lock(MEMRT__RANK_THREADS);
    memrt__store_relaxed(&level->past_gauges, 0);
    visit_accounts_in_level(level, rest_account);
    memrt__store_relaxed(&level->peak, 0);
    visit_accounts_in_level(level, memrt__gauges_mark_rises);
    memrt__unlock(MEMRT__RANK_THREADS);
    memrt__store_relaxed(&level->most_gauges, 0);
    memrt__raise_release(&level->most_gauges, memrt__load_relaxed(&level->gauges));
    memrt__store_relaxed(&level->most_hidden, 0);
    memrt__raise_release(&level->most_hidden, memrt__load_relaxed(&level->hidden));
    memrt_stats_t now;
    memrt__stats_read(level, &now);
    memrt__raise_release(&level->peak, now.live);
}

bool memrt__stats_is_settled(const memrt__account_t *account)
{
    memrt__sums_t sum = {0};
    memrt__lock(MEMRT__RANK_THREADS);
    memrt__shard_sums_add_account(account, memrt__shard_sums_add_out, &sum);
    memrt__shard_sums_add_account(account, memrt__shard_sums_add_in, &sum);
    memrt__unlock(MEMRT__RANK_THREADS);
    size_t left = (memrt__shard_sums_kinds(sum.made) - memrt__shard_sums_kinds(sum.freed)) |
                  (sum.bytes_in - sum.bytes_out) | (sum.promoted_in - sum.promoted_out) |
                  (sum.extra_in - sum.extra_out) | (sum.adopted_in - sum.adopted_out) |
                  (sum.exported_in - sum.exported_out);
    return left == 0;
}

/// Add the blocks by size of all accounts of an aggregate.
static void add_all_sizes(const memrt__level_t *level, memrt__shard_add_sizes_fn add, size_t *sizes)
{
    for (memrt__account_t *a = memrt__account_first(); a != NULL; a = a->next) {
        if (memrt__account_is_in(a, level)) {
            memrt__shard_sums_add_account_sizes(a, add, sizes);
        }
    }
}

void memrt__stats_sizes(const memrt__level_t *level, memrt_sizes_t *out)
{
    size_t made[MEMRT_SIZE_BINS] = {0}, freed[MEMRT_SIZE_BINS] = {0};
    memrt__lock(MEMRT__RANK_THREADS);
    add_all_sizes(level, memrt__shard_sums_add_freed_sizes, freed);
    add_all_sizes(level, memrt__shard_sums_add_made_sizes, made);
    for (size_t bin = 0; bin < MEMRT_SIZE_BINS; bin++) {
        made[bin] += level->past_sizes[bin];
        freed[bin] += level->past_sizes[bin];
    }
    memrt__unlock(MEMRT__RANK_THREADS);
    for (size_t bin = 0; bin < MEMRT_SIZE_BINS; bin++) {
        out->allocated[bin] = made[bin];
        out->live[bin] = memrt__size_at_least_zero(made[bin] - freed[bin]);
    }
}

#if MEMRT_DEBUG

/// Return whether no further thread has a record, so that all figures are at rest. Under the lock
/// of rank THREADS.
static bool is_only_thread(void)
{
    const memrt__thread_t *thread = memrt__thread_first();
    while (thread != NULL && (thread == memrt__self || !thread->in_use)) {
        thread = thread->next;
    }
    return thread == NULL;
}

/// Check the shards of an account that no other thread can change.
static bool are_shards_valid(const memrt__account_t *account)
{
    bool valid = true;
    for (memrt__thread_t *t = memrt__thread_first(); valid && t != NULL; t = t->next) {
        const memrt__shard_t *shard = memrt__thread_shard(t, account->index);
        bool own = t == memrt__self || !t->in_use;
        valid = shard == NULL || !own || memrt__shard_is_valid(shard);
    }
    return valid;
}

/// Check the sums of an account at rest. A fork may leave sums of other accounts out of order.
static bool are_sums_valid(const memrt__account_t *account)
{
    memrt__sums_t sum = {0};
    memrt__shard_sums_add_account(account, memrt__shard_sums_add_out, &sum);
    memrt__shard_sums_add_account(account, memrt__shard_sums_add_in, &sum);
    return account->origin != MEMRT__OWN ||
           (MEMRT__HOLDS(sum.bytes_in >= sum.bytes_out) &&
            MEMRT__HOLDS(memrt__shard_sums_kinds(sum.made) >= memrt__shard_sums_kinds(sum.freed)) &&
            MEMRT__HOLDS(sum.promoted_in >= sum.promoted_out) &&
            MEMRT__HOLDS(sum.extra_in >= sum.extra_out) &&
            MEMRT__HOLDS(sum.adopted_in >= sum.adopted_out) &&
            MEMRT__HOLDS(sum.exported_in >= sum.exported_out));
}

/// Sums over the gauges of the accounts of an aggregate.
typedef struct gauge_sums {
    size_t reported, active, hidden;
} gauge_sums_t;

static void add_gauges(const memrt__account_t *account, gauge_sums_t *sums)
{
    sums->reported += memrt__shard_net(account->shared);
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        const memrt__shard_t *shard = memrt__thread_shard(t, account->index);
        sums->reported += shard == NULL ? 0 : shard->reported;
        sums->active += shard != NULL && !memrt__gauge_is_at_rest(shard);
        sums->hidden += shard == NULL ? 0 : shard->allowance;
    }
}

/// Check the aggregate of all accounts at rest: the sum of all reports, and the number of gauges
/// with changes that are not reported.
static bool is_process_valid(void)
{
    gauge_sums_t sums = {0};
    for (memrt__account_t *a = memrt__account_first(); a != NULL; a = a->next) {
        add_gauges(a, &sums);
    }
    return MEMRT__HOLDS(memrt__process.flushed == sums.reported) &&
           MEMRT__HOLDS(memrt__process.gauges == sums.active) &&
           MEMRT__HOLDS(memrt__process.hidden == sums.hidden) &&
           MEMRT__HOLDS(memrt__process.most_hidden >= memrt__process.hidden) &&
           MEMRT__HOLDS(memrt__process.most_gauges >= memrt__process.gauges);
}

bool memrt__stats_is_valid(void)
{
    bool valid = true;
    memrt__lock(MEMRT__RANK_THREADS);
    bool alone = is_only_thread();
    for (memrt__account_t *a = memrt__account_first(); valid && a != NULL; a = a->next) {
        valid = MEMRT__HOLDS(a->index < MEMRT__ACCOUNTS) && MEMRT__HOLDS(a->shared != NULL) &&
                MEMRT__HOLDS(a->policy != NULL && a->policy->up == &memrt__process) &&
                MEMRT__HOLDS(a->origin < MEMRT__ORIGINS) && are_shards_valid(a) &&
                (!alone || are_sums_valid(a));
    }
    valid = valid && (!alone || is_process_valid());
    memrt__unlock(MEMRT__RANK_THREADS);
    return valid || !MEMRT_COUNTERS;
}

#endif
