/// Model: one thread sets the observer callbacks, while another thread frees an observed block. The
/// free calls a completely initialised callback table, or no callback.

#include "tests/models/block/block.h"

static memrt_observer_t own;
static unsigned told;

static void note(void *where)
{
    (void)where;
    told++;
}

static void *release(void *context)
{
    memrt__meminfo_release(&block);
    return context;
}

int main(void)
{
    make_the_block(MEMRT_FLAG_OBSERVED);
    memrt__block_notify_alloc(&block, 0);
    pthread_t other = model_thread(release, NULL);
    own.free = note;
    memrt__user_observer_set(&own);
    model_join(other);
    assert(told <= 1 && destroyed == 1 && frees == 1);
    return 0;
}
