#include "runtime/stats/retire.h"

#include <string.h>

#include "runtime/os/lock.h"
#include "runtime/stats/shard_sums.h"
#include "runtime/stats/thread_stats.h"

size_t memrt__stats_idle_readings;

static size_t count_freed_blocks(const memrt__shard_t *shard)
{
    size_t freed = 0;
    for (size_t i = 0; i < MEMRT__COUNTS; i++) {
        freed += memrt__load_acquire(&shard->freed[i]);
    }
    return freed;
}

static size_t count_made_blocks(const memrt__shard_t *shard)
{
    size_t made = 0;
    for (size_t i = 0; i < MEMRT__COUNTS; i++) {
        made += memrt__load_relaxed(&shard->made[i]);
    }
    return made;
}

typedef size_t (*count_fn)(const memrt__shard_t *shard);

static MEMRT__INLINE size_t add_up_shards(const memrt__account_t *account, count_fn count)
{
    size_t sum = count(account->shared);
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        const memrt__shard_t *shard = memrt__thread_shard(t, account->index);
        if (shard != NULL) {
            sum += count(shard);
            memrt__stats_idle_readings++;
        }
    }
    return sum;
}

/// Count frees before allocations, so that other threads may count meanwhile.
bool memrt__stats_is_idle(const memrt__account_t *account)
{
    memrt__lock(MEMRT__RANK_THREADS);
    size_t freed = add_up_shards(account, count_freed_blocks);
    size_t made = add_up_shards(account, count_made_blocks);
    memrt__unlock(MEMRT__RANK_THREADS);
    return MEMRT_COUNTERS && made == freed;
}

/// Make the "out" words of an idle account equal to the "in" words. For an inherited account the
/// words may differ: a fork may have interrupted a parent thread between the two.
static void settle_sums(memrt__sums_t *sum)
{
    sum->bytes_out = sum->bytes_in;
    sum->promoted_out = sum->promoted_in;
    sum->extra_out = sum->extra_in;
    sum->adopted_out = sum->adopted_in;
    sum->exported_out = sum->exported_in;
}

/// Counts of all shards of a retired account.
typedef struct moved_counts {
    memrt__sums_t sum;
    size_t sizes[MEMRT_SIZE_BINS];
} moved_counts_t;

/// Move the counts of a retired account to `past` of an aggregate and all outer aggregates. `left`:
/// reported bytes that are no longer in use.
static void move_counts_to_past(memrt__level_t *level, const moved_counts_t *moved, size_t left)
{
    for (; level != NULL; level = level->up) {
        memrt__fetch_add_relaxed(&level->flushed, (size_t)0 - left);
        memrt__shard_sums_add(&moved->sum, &level->past);
        for (size_t bin = 0; bin < MEMRT_SIZE_BINS; bin++) {
            level->past_sizes[bin] += moved->sizes[bin];
        }
    }
}

/// Add the counts of a shard that no thread changes any more.
static void add_counts(const memrt__shard_t *shard, moved_counts_t *moved)
{
    memrt__shard_sums_add_out(shard, &moved->sum);
    memrt__shard_sums_add_in(shard, &moved->sum);
    memrt__shard_sums_add_made_sizes(shard, moved->sizes);
}

static bool is_untouched(const memrt__shard_t *shard)
{
    static const memrt__shard_t untouched;
    return memcmp(shard, &untouched, sizeof(untouched)) == 0;
}

/// Move the counts of a shard of an idle account. An idle account has no bytes in use, so the
/// reports of all gauges then sum to 0, except for bytes that a fork left over.
static void move_shard(memrt__thread_t *thread, memrt__shard_t *shard, memrt__account_t *account,
                       moved_counts_t *moved)
{
    memrt__gauge_rest(shard, account);
    memrt__thread_stats_retire(thread, shard);
    add_counts(shard, moved);
    memset(shard, 0, sizeof(*shard));
}

/// Move the counts of all threads. No thread changes a shard of an idle account, so a single pass
/// reads all counters.
static void move_thread_shards(memrt__account_t *account, moved_counts_t *moved)
{
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        memrt__shard_t *shard = memrt__thread_shard(t, account->index);
        if (shard != NULL && !is_untouched(shard)) {
            move_shard(t, shard, account, moved);
        }
    }
}

void memrt__stats_retire(memrt__account_t *account)
{
    moved_counts_t moved = {0};
    memrt__lock(MEMRT__RANK_THREADS);
    add_counts(account->shared, &moved);
    *account->shared = MEMRT__SHARED_SHARD;
    move_thread_shards(account, &moved);
    size_t left = moved.sum.bytes_in - moved.sum.bytes_out;
    MEMRT__ASSERT(left == 0 || account->origin != MEMRT__OWN);
    MEMRT__ASSERT(memrt__shard_sums_kinds(moved.sum.made) ==
                  memrt__shard_sums_kinds(moved.sum.freed));
    settle_sums(&moved.sum);
    move_counts_to_past(account->policy, &moved, left);
    move_counts_to_past(account->scope, &moved, left);
    memrt__account_leave(account);
    memrt__unlock(MEMRT__RANK_THREADS);
}
