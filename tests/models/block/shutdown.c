/// Model: shutdown runs while a block is destroyed. The destructor runs at most once, and the
/// memory is freed. No destructor runs for blocks destroyed after the shutdown.

#include "tests/models/block/block.h"

static void *release(void *context)
{
    memrt__meminfo_release(&block);
    return context;
}

int main(void)
{
    make_the_block(0);
    memrt__block_notify_alloc(&block, 0);
    memrt__meminfo_acquire(&block);
    pthread_t other = model_thread(release, NULL);
    memrt__dtor_shutdown();
    memrt__meminfo_release(&block);
    model_join(other);
    assert(destroyed <= 1 && frees == 1);
    unsigned before = destroyed;
    make_the_block(0);
    memrt__block_notify_alloc(&block, 0);
    memrt__meminfo_release(&block);
    assert(destroyed == before && frees == 2);
    return 0;
}
