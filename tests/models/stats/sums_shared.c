/// Model: threads without a shard of their own count by the atomic operations of the shared shard.
/// A reader at any time gets outgoing sums that do not exceed incoming sums.

#include "tests/models/stats/sums.h"

static void *count_in(void *context)
{
    memrt__tally_t tally = {&account, &maker, false};
    memrt__tally_in(&tally, &maker.made[0], 1);
    memrt__tally_grow(&tally, 1);
    hand_over();
    return context;
}

static void *count_out(void *context)
{
    memrt__tally_t tally = {&account, &freer, false};
    if (was_handed()) {
        memrt__tally_shrink(&tally, 1);
        memrt__tally_out(&tally, &freer.freed[0], 1);
    }
    return context;
}

int main(void)
{
    pthread_t a = model_thread(count_in, NULL), b = model_thread(count_out, NULL);
    memrt__shard_t sum = add_up();
    assert(sum.freed[0] <= sum.made[0]);
    assert(sum.bytes_out <= sum.bytes_in);
    model_join(a);
    model_join(b);
    return 0;
}
