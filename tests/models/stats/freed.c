/// Model: one thread frees twice and allocates, while another thread reads the freed bytes twice.
/// The freed bytes never decrease from one read to the next.

#include "tests/models/peak/peak.h"

static void *shrink_and_grow(void *context)
{
    memrt__shard_shrink(&record.first, &account, 1);
    memrt__shard_shrink(&record.first, &account, 1);
    memrt__shard_grow(&record.first, &account, 3);
    return context;
}

int main(void)
{
    memrt__shard_grow(&record.first, &account, 3);
    pthread_t owner = model_thread(shrink_and_grow, NULL);
    size_t first = memrt__shard_bytes_out(&record.first);
    assert(first <= memrt__shard_bytes_out(&record.first));
    model_join(owner);
    assert(memrt__shard_bytes_out(&record.first) == 2);
    return 0;
}
