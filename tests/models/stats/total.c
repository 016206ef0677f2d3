/// Model: one thread allocates twice and frees, while another thread reads the allocated bytes
/// twice. The allocated bytes never decrease from one read to the next.

#include "tests/models/peak/peak.h"

static void *grow_and_shrink(void *context)
{
    memrt__shard_grow(&record.first, &account, 1);
    memrt__shard_grow(&record.first, &account, 1);
    memrt__shard_shrink(&record.first, &account, 1);
    return context;
}

int main(void)
{
    pthread_t owner = model_thread(grow_and_shrink, NULL);
    size_t first = memrt__shard_bytes_in(&record.first);
    assert(first <= memrt__shard_bytes_in(&record.first));
    model_join(owner);
    assert(memrt__shard_bytes_in(&record.first) == 2);
    return 0;
}
