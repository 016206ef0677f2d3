/// Model: one thread counts a block, and another thread counts the free of the block. A reader of
/// the blocks by size never gets more freed than allocated blocks.

#include "tests/models/stats/sums.h"

enum { SIZE = 8 };

static void *count_in(void *context)
{
    memrt__count_in(&maker.made[memrt__count_of_block(MEMRT_KIND_BLOCK, SIZE)], 1);
    hand_over();
    return context;
}

static void *count_out(void *context)
{
    if (was_handed()) {
        memrt__count_out(&freer.freed[memrt__count_of_block(MEMRT_KIND_BLOCK, SIZE)], 1);
    }
    return context;
}

int main(void)
{
    static size_t made[MEMRT_SIZE_BINS], freed[MEMRT_SIZE_BINS];
    pthread_t a = model_thread(count_in, NULL), b = model_thread(count_out, NULL);
    memrt__shard_sums_add_freed_sizes(&freer, freed);
    memrt__shard_sums_add_made_sizes(&maker, made);
    assert(freed[memrt__size_bin(SIZE)] <= made[memrt__size_bin(SIZE)]);
    model_join(a);
    model_join(b);
    return 0;
}
