/// Model: one thread reports growth, shrinkage and growth again, while another thread reads. The
/// peak that the reader gets never exceeds the true maximum.

#include "tests/models/stats/peak.h"

static void *grow_shrink_and_grow(void *context)
{
    memrt__shard_grow(&record.first, &account, MUCH);
    memrt__shard_shrink(&record.first, &account, MUCH);
    memrt__shard_grow(&record.first, &account, MUCH);
    return context;
}

int main(void)
{
    pthread_t grower = model_thread(grow_shrink_and_grow, NULL);
    assert(peak_now() <= MUCH);
    model_join(grower);
    assert(peak_now() == MUCH);
    return 0;
}
