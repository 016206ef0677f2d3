/// Model: one thread reports growth, while another thread reads the peak and then the allocated
/// bytes. The peak never exceeds the allocated bytes.

#include "tests/models/peak/peak.h"

static void *grow(void *context)
{
    memrt__shard_grow(&record.first, &account, MUCH);
    return context;
}

int main(void)
{
    pthread_t grower = model_thread(grow, NULL);
    size_t peak = peak_now();
    assert(peak <= memrt__shard_bytes_in(&record.first));
    model_join(grower);
    return 0;
}
