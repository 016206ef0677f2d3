/// Model: one thread claims a block in the live set, while another thread looks up the block. A
/// lookup gets no reference to a claimed block.

#include "tests/models/block/block.h"

static void *find_and_write(void *context)
{
    memrt_meminfo_t *mi;
    if (memrt__lookup_find(data, &mi) == MEMRT_OK) {
        data[0] = mi->lead;
        memrt__meminfo_release(mi);
    }
    return context;
}

int main(void)
{
    make_the_block(MEMRT__FLAG_LISTED);
    memrt__block_notify_alloc(&block, 0);
    enter_live();
    pthread_t finder = model_thread(find_and_write, NULL);
    if (memrt__block_claim(&block)) {
        data[0] = 2;
        block.lead = 128;
        memrt__block_publish(&block);
    }
    memrt__meminfo_release(&block);
    model_join(finder);
    assert(destroyed == 1 && frees == 1);
    return 0;
}
