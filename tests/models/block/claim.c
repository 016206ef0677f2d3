/// Model: one thread claims a block in order to move it, while another thread releases a reference.
/// The claim succeeds only after the last write of the other thread.

#include "tests/models/block/block.h"

static void *write_and_release(void *context)
{
    data[0] = 1;
    memrt__meminfo_release(&block);
    return context;
}

int main(void)
{
    make_the_block(0);
    memrt__block_notify_alloc(&block, 0);
    memrt__meminfo_acquire(&block);
    pthread_t other = model_thread(write_and_release, NULL);
    if (memrt__block_claim(&block)) {
        data[0] = 2;
        block.size++;
        memrt__block_publish(&block);
    }
    memrt__meminfo_release(&block);
    model_join(other);
    assert(destroyed == 1 && frees == 1);
    return 0;
}
