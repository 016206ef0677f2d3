/// Model: threads without a shard of their own count by the atomic operations of the shared shard.
/// A reader at any time gets outgoing sums that do not exceed incoming sums.

#include "tests/models/stats/sums.h"

static void *count_in(void *context)
{
    memrt__tally_t tally = {&account, &maker, false};
    memrt__tally_made(&tally, MEMRT_KIND_BLOCK, 1, 1);
    memrt__tally_grow(&tally, 1);
    hand_over();
    return context;
}

static void *count_out(void *context)
{
    memrt__tally_t tally = {&account, &freer, false};
    if (was_handed()) {
        memrt__tally_shrink(&tally, 1);
        memrt__tally_freed(&tally, MEMRT_KIND_BLOCK, 1);
    }
    return context;
}

int main(void)
{
    maker = freer = MEMRT__SHARED_SHARD;
    pthread_t a = model_thread(count_in, NULL), b = model_thread(count_out, NULL);
    memrt__sums_t sum = add_up();
    assert(sum.freed[MEMRT_KIND_BLOCK] <= sum.made[MEMRT_KIND_BLOCK]);
    assert(sum.bytes_out <= sum.bytes_in);
    model_join(a);
    model_join(b);
    return 0;
}
