/// A thread tells what rose, and what fell, while another reads: the peak that it finds is never
/// above all that was ever allocated.

#include "tests/models/peak.h"

static void *grow_and_shrink(void *context)
{
    memrt__shard_grow(&record.first, &account, MUCH);
    memrt__shard_shrink(&record.first, &account, MUCH);
    return context;
}

int main(void)
{
    pthread_t grower = model_thread(grow_and_shrink, NULL);
    assert(peak_now() <= memrt__load_relaxed(&record.first.bytes_in));
    model_join(grower);
    assert(peak_now() == MUCH);
    return 0;
}
