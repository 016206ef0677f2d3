/// Model: one thread counts a second block, and another thread counts the free of that block. A
/// reader never takes the account for idle while the first block is in use.

#include "tests/models/stats/sums.h"

#define add_counts add_moved_counts /* shard_sums.c has a function of the same name */

#include "runtime/stats/retire.c"

static memrt__thread_t record;

memrt__thread_t *memrt__thread_first(void)
{
    return &record;
}

static void *count_in(void *context)
{
    memrt__count_in(&record.first.made[MEMRT__COUNTS_BLOCK], 1);
    hand_over();
    return context;
}

static void *count_out(void *context)
{
    if (was_handed()) {
        memrt__count_out(&freer.freed[MEMRT__COUNTS_BLOCK], 1);
    }
    return context;
}

int main(void)
{
    account.shared = &freer;
    record.first.made[MEMRT__COUNTS_BLOCK] = 1;
    pthread_t a = model_thread(count_in, NULL), b = model_thread(count_out, NULL);
    assert(!memrt__stats_is_idle(&account));
    model_join(a);
    model_join(b);
    return 0;
}
