/// Model: one thread frees bytes of the shared shard and then allocates, while another thread
/// reads. The reader never adds the allocation to the bytes before the free: the peak stays the
/// true maximum.

#include "tests/models/peak/peak.h"

static void *shrink_and_grow(void *context)
{
    memrt__account_add_shared(&account, (size_t)-2);
    memrt__shard_grow(&record.first, &account, 1);
    return context;
}

int main(void)
{
    memrt__account_add_shared(&account, 2);
    pthread_t owner = model_thread(shrink_and_grow, NULL);
    assert(peak_now() == 2);
    model_join(owner);
    assert(peak_now() == 2);
    return 0;
}
