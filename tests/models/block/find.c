/// Model: one thread looks up a block in the live set, while another thread initialises, uses and
/// releases the block. The lookup gets a complete block or none. The last release destroys the
/// block, exactly once.

#include "tests/models/block/block.h"

static void *find_and_release(void *context)
{
    memrt_meminfo_t *mi;
    if (memrt__lookup_find(data, &mi) == MEMRT_OK) {
        assert(mi->dtor == destroy_data && data[0] == 7);
        data[0] = 8;
        memrt__meminfo_release(mi);
    }
    return context;
}

int main(void)
{
    make_the_block(MEMRT__FLAG_LISTED);
    block.dtor = NULL;
    enter_live();
    pthread_t finder = model_thread(find_and_release, NULL);
    block.dtor = destroy_data;
    data[0] = 7;
    memrt__block_notify_alloc(&block, 0);
    data[1] = 9;
    memrt__meminfo_release(&block);
    model_join(finder);
    assert(destroyed == 1 && frees == 1);
    return 0;
}
