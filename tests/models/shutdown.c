/// Shutdown comes while a block dies: its destructor runs once or not at all, its memory is freed,
/// and nothing that dies afterwards runs one.

#include "tests/models/block.h"

static void *release(void *context)
{
    memrt__meminfo_release(&block);
    return context;
}

int main(void)
{
    make_the_block(0);
    memrt__block_born(&block, 0);
    memrt__meminfo_acquire(&block);
    pthread_t other = model_thread(release, NULL);
    memrt__dtor_shutdown();
    memrt__meminfo_release(&block);
    model_join(other);
    assert(deaths <= 1 && frees == 1);
    unsigned before = deaths;
    make_the_block(0);
    memrt__block_born(&block, 0);
    memrt__meminfo_release(&block);
    assert(deaths == before && frees == 2);
    return 0;
}
