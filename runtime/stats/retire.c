#include "runtime/stats/retire.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/os/lock.h"
#include "runtime/stats/shard_sums.h"

/// Make the "out" words of an idle account equal to the "in" words. For an inherited account the
/// words may differ: a fork may have interrupted a parent thread between the two.
static void settle_sums(memrt__shard_t *sum)
{
    sum->bytes_out = sum->bytes_in;
    sum->promoted_out = sum->promoted_in;
    sum->extra_out = sum->extra_in;
    sum->adopted_out = sum->adopted_in;
    sum->exported_out = sum->exported_in;
}

/// Move the counts of a retired account to `past` of an aggregate and all outer aggregates. `left`:
/// reported bytes that are no longer in use.
static void move_counts_to_past(memrt__level_t *level, const memrt__shard_t *sum, size_t left)
{
    for (; level != NULL; level = level->up) {
        memrt__fetch_add_relaxed(&level->flushed, (size_t)0 - left);
        memrt__shard_sums_add_out(sum, &level->past);
        memrt__shard_sums_add_in(sum, &level->past);
        for (size_t bin = 0; bin < MEMRT_SIZE_BINS; bin++) {
            level->sizes[bin] += sum->sizes[bin];
        }
    }
}

/// Bring all gauges of an idle account to rest. An idle account has no bytes in use, so its reports
/// then sum to 0, except for bytes that a fork left over.
static void rest_idle_gauges(memrt__account_t *account)
{
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        memrt__shard_t *shard = memrt__thread_shard(t, account->index);
        if (shard != NULL) {
            memrt__gauge_rest(shard, account);
        }
    }
}

static void clear_shard(memrt__shard_t *shard)
{
    free(shard->sizes);
    memset(shard, 0, sizeof(*shard));
}

void memrt__stats_retire(memrt__account_t *account)
{
    size_t sizes[MEMRT_SIZE_BINS] = {0};
    memrt__shard_t sum = {.sizes = sizes};
    memrt__lock(MEMRT__RANK_THREADS);
    rest_idle_gauges(account);
    memrt__shard_sums_add_account(account, memrt__shard_sums_add_out, &sum);
    memrt__shard_sums_add_account(account, memrt__shard_sums_add_in, &sum);
    memrt__shard_sums_add_account(account, memrt__shard_sums_add_sizes, &sum);
    size_t left = sum.bytes_in - sum.bytes_out;
    MEMRT__ASSERT(left == 0 || account->origin != MEMRT__OWN);
    MEMRT__ASSERT(memrt__shard_sums_kinds(sum.made) == memrt__shard_sums_kinds(sum.freed));
    settle_sums(&sum);
    move_counts_to_past(account->policy, &sum, left);
    move_counts_to_past(account->scope, &sum, left);
    memset(account->shared, 0, sizeof(*account->shared));
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        memrt__shard_t *shard = memrt__thread_shard(t, account->index);
        if (shard != NULL) {
            clear_shard(shard);
        }
    }
    memrt__account_leave(account);
    memrt__unlock(MEMRT__RANK_THREADS);
}
