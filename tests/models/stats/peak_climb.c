/// Model: one thread allocates twice without a free in between, frees and allocates again, while
/// another thread reads. The peak that the reader gets never exceeds the true maximum.

#include "tests/models/stats/peak.h"

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
