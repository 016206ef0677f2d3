/// Model: one thread upgrades a weak handle, while another thread releases the last reference. The
/// upgrade gets the live block or NULL. A handle with another serial number gets NULL. The block is
/// destroyed once, after every use.

#include "tests/models/block/block.h"

#include "runtime/meminfo/weak.c"

static void *upgrade_and_release(void *context)
{
    memrt_weak_t handle = {(uintptr_t)&block, LIVE_ID}, stale = {(uintptr_t)&block, LIVE_ID + 1};
    assert(memrt__weak_acquire(&stale) == NULL);
    memrt_meminfo_t *mi = memrt__weak_acquire(&handle);
    if (mi != NULL) {
        assert(mi->dtor == destroy_data && data[0] == 7);
        data[0] = 8;
        memrt__meminfo_release(mi);
    }
    return context;
}

int main(void)
{
    make_the_block(MEMRT__FLAG_LISTED);
    enter_live();
    data[0] = 7;
    memrt__block_notify_alloc(&block, 0);
    pthread_t other = model_thread(upgrade_and_release, NULL);
    data[1] = 9;
    memrt__meminfo_release(&block);
    model_join(other);
    assert(destroyed == 1 && frees == 1);
    return 0;
}
