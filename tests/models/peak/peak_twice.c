/// Model: a gauge climbs, and its thread then frees. Another thread reads the peak twice, and then
/// the allocated bytes. The peak never decreases, and never exceeds the allocated bytes.

#include "tests/models/peak/peak.h"

static void *climb_and_shrink(void *context)
{
    memrt__shard_grow(&record.first, &account, 1);
    memrt__shard_shrink(&record.first, &account, 1);
    return context;
}

int main(void)
{
    memrt__shard_grow(&record.first, &account, 1);
    pthread_t climber = model_thread(climb_and_shrink, NULL);
    size_t first = peak_now(), second = peak_now();
    assert(first <= second && second <= memrt__shard_bytes_in(&record.first));
    model_join(climber);
    assert(peak_now() == 2);
    return 0;
}
