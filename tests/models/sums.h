#ifndef MEMRT_TESTS_MODELS_SUMS_H
#define MEMRT_TESTS_MODELS_SUMS_H

/// The runtime's shards and sums: one thread counts what comes in, another what goes out, a third
/// reads.

#include "tests/models/model.h"

#include "runtime/stats/shard.c"
#include "runtime/stats/stats.c"

MEMRT__THREAD_LOCAL memrt__thread_t *memrt__self;
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
static memrt__shard_t maker, freer, nobody;
static memrt__account_t account = {.policy = &level, .shared = &nobody};
static size_t handed; /* what was made is given from one to the other */

static inline void hand_over(void)
{
    memrt__store_release(&handed, 1);
}

static inline bool was_handed(void)
{
    return memrt__load_acquire(&handed) != 0;
}

/// As the runtime adds up: what went out before what came in.
static inline memrt__shard_t add_up(void)
{
    memrt__shard_t sum = {0};
    add_outs(&freer, &sum);
    add_ins(&maker, &sum);
    return sum;
}

#endif
