/// Model: one thread counts allocated bytes, and another thread counts the freed bytes on the slow
/// path. A reader at any time gets freed bytes that do not exceed the allocated bytes.

#include "tests/models/stats/sums.h"

static void *count_in(void *context)
{
    (void)memrt__shard_grow_fast(&maker, 1);
    hand_over();
    return context;
}

static void *count_out(void *context)
{
    if (was_handed()) {
        memrt__shard_shrink(&freer, &account, 1);
    }
    return context;
}

int main(void)
{
    freer = (memrt__shard_t){.low = (size_t)-2};
    pthread_t a = model_thread(count_in, NULL), b = model_thread(count_out, NULL);
    size_t freed = memrt__shard_bytes_out(&freer);
    assert(freed <= memrt__shard_bytes_in(&maker));
    model_join(a);
    model_join(b);
    return 0;
}
