/// Model: one thread reports a decrease and allocates again, while another thread reads. The reader
/// never adds the new allocation to the bytes before the decrease: the peak stays the true maximum.

#include "tests/models/peak/peak.h"

static void *shrink_and_grow(void *context)
{
    memrt__shard_shrink(&record.first, &account, MUCH);
    memrt__shard_grow(&record.first, &account, 1);
    return context;
}

int main(void)
{
    memrt__shard_grow(&record.first, &account, MUCH);
    pthread_t owner = model_thread(shrink_and_grow, NULL);
    assert(peak_now() == MUCH);
    model_join(owner);
    assert(peak_now() == MUCH);
    return 0;
}
