/// A thread tells what rose and what fell, and rises again, while another reads: the peak that it
/// finds is never above the most that was in use.

#include "tests/models/peak.h"

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
