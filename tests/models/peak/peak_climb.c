/// Model: one thread allocates twice, frees both bytes and allocates again. Another thread reads
/// the peak meanwhile. The result never exceeds the true maximum.

#include "tests/models/peak/peak.h"

static void *climb_fall_and_climb(void *context)
{
    memrt__shard_grow(&record.first, &account, 1);
    memrt__shard_grow(&record.first, &account, 1);
    memrt__shard_shrink(&record.first, &account, 2);
    memrt__shard_grow(&record.first, &account, 1);
    return context;
}

int main(void)
{
    pthread_t climber = model_thread(climb_fall_and_climb, NULL);
    assert(peak_now() <= 2);
    model_join(climber);
    assert(peak_now() == 2);
    return 0;
}
