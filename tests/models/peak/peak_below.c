/// Model: one thread reports growth, while another thread reads twice. The peak never decreases
/// from one read to the next.

#include "tests/models/peak/peak.h"

static void *grow(void *context)
{
    memrt__shard_grow(&record.first, &account, MUCH);
    return context;
}

int main(void)
{
    pthread_t grower = model_thread(grow, NULL);
    size_t first = peak_now();
    assert(first <= peak_now());
    model_join(grower);
    assert(peak_now() == MUCH);
    return 0;
}
