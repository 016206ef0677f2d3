/// Model: threads write to a block and release references concurrently. The destructor runs once,
/// and sees every write.

#include "tests/models/block/block.h"

static void *write_and_release(void *at)
{
    memrt__meminfo_acquire(&block);
    *(size_t *)at = 1;
    memrt__meminfo_release(&block);
    memrt__meminfo_release(&block);
    return NULL;
}

int main(void)
{
    make_the_block(0);
    memrt__block_notify_alloc(&block, 0);
    memrt__meminfo_acquire(&block);
    pthread_t a = model_thread(write_and_release, &data[0]);
    pthread_t b = model_thread(write_and_release, &data[1]);
    model_join(a);
    model_join(b);
    assert(destroyed == 1 && frees == 1);
    return 0;
}
