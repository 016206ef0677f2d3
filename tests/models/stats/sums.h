#ifndef MEMRT_TESTS_MODELS_SUMS_H
#define MEMRT_TESTS_MODELS_SUMS_H

/// Run the runtime's shards and sums: one thread counts allocations, another counts frees, and a
/// third reads.

#include "tests/models/model.h"

#include "runtime/stats/peak.h"
#undef MEMRT__PEAK_LOOKS
#define MEMRT__PEAK_LOOKS 2 /* fewer executions to explore */

#include "runtime/stats/account.c"
#include "runtime/stats/allowance.c"
#include "runtime/stats/level.c"
#include "runtime/stats/peak.c"
#include "runtime/stats/promise.c"
#include "runtime/stats/shard.c"
#include "runtime/stats/shard_sums.c"
#include "runtime/stats/stats.c"

memrt__shard_t memrt__closed_shard;
memrt__thread_t memrt__no_thread = MEMRT__NO_THREAD;
MEMRT__THREAD_LOCAL memrt__thread_t *memrt__self = &memrt__no_thread;
memrt__options_t memrt__options;

void memrt__lock(memrt__rank_t rank)
{
    (void)rank;
}

void memrt__unlock(memrt__rank_t rank)
{
    (void)rank;
}

static memrt__level_t level;
static memrt__shard_t maker = {.alloc_left = 2, .in_limit = 2};
static memrt__shard_t freer = {.free_left = 2, .out_limit = 2};
static memrt__shard_t nobody = {.sequence = 1};
static memrt__account_t account = {.policy = &level, .shared = &nobody};
static size_t handed; /* 1 after the maker passed its blocks to the freeing thread */

static inline void hand_over(void)
{
    memrt__store_release(&handed, 1);
}

static inline bool was_handed(void)
{
    return memrt__load_acquire(&handed) != 0;
}

/// Add up in the runtime's order: outgoing sums before incoming sums.
static inline memrt__sums_t add_up(void)
{
    memrt__sums_t sum = {0};
    memrt__shard_sums_add_out(&freer, &sum);
    memrt__shard_sums_add_in(&maker, &sum);
    return sum;
}

#endif
