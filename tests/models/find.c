/// A finder comes upon a block in the live set while it is born, used and let go: it gets a whole
/// block or none, and whoever is last ends it, once.

#include "tests/models/block.h"

static void *find_and_release(void *context)
{
    memrt_meminfo_t *mi;
    if (memrt__owner_find(data, &mi) == MEMRT_OK) {
        assert(mi->dtor == die && data[0] == 7);
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
    block.dtor = die;
    data[0] = 7;
    memrt__block_born(&block, 0);
    data[1] = 9;
    memrt__meminfo_release(&block);
    model_join(finder);
    assert(deaths == 1 && frees == 1);
    return 0;
}
