/// Model: threads count in shards of their own. A reader at any time gets outgoing sums that do not
/// exceed incoming sums.

#include "tests/models/stats/sums.h"

static void *count_in(void *context)
{
    memrt__count_in(&maker.made[MEMRT__COUNTS_BLOCK], 1);
    memrt__count_in(&maker.promoted_in, 1);
    memrt__count_in(&maker.extra_in, 1);
    memrt__count_in(&maker.adopted_in, 1);
    memrt__count_in(&maker.exported_in, 1);
    (void)memrt__shard_grow_fast(&maker, 1);
    hand_over();
    return context;
}

static void *count_out(void *context)
{
    if (was_handed()) {
        memrt__count_out(&freer.promoted_out, 1);
        memrt__count_out(&freer.extra_out, 1);
        memrt__count_out(&freer.adopted_out, 1);
        memrt__count_out(&freer.exported_out, 1);
        (void)memrt__shard_shrink_fast(&freer, 1);
        memrt__count_out(&freer.freed[MEMRT__COUNTS_BLOCK], 1);
    }
    return context;
}

int main(void)
{
    pthread_t a = model_thread(count_in, NULL), b = model_thread(count_out, NULL);
    memrt__sums_t sum = add_up();
    assert(sum.freed[MEMRT_KIND_BLOCK] <= sum.made[MEMRT_KIND_BLOCK]);
    assert(sum.promoted_out <= sum.promoted_in);
    assert(sum.extra_out <= sum.extra_in);
    assert(sum.adopted_out <= sum.adopted_in);
    assert(sum.exported_out <= sum.exported_in);
    assert(sum.bytes_out <= sum.bytes_in);
    model_join(a);
    model_join(b);
    return 0;
}
