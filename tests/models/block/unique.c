/// Model: one thread writes to the data and releases a reference, while another thread tries to
/// prove that it holds the only reference, and then overwrites the data. A weak handle that the
/// first thread makes keeps the proof from succeeding.

#include "tests/models/block/block.h"

static void *write_and_release(void *context)
{
    data[0] = 1;
    if (context != NULL) {
        memrt__flags_set_relaxed(&block.flags, MEMRT__FLAG_WEAK);
    }
    memrt__meminfo_release(&block);
    return NULL;
}

static void prove_beside_release(bool makes_handle)
{
    make_the_block(0);
    memrt__block_notify_alloc(&block, 0);
    memrt__meminfo_acquire(&block);
    pthread_t other = model_thread(write_and_release, makes_handle ? &block : NULL);
    if (memrt__meminfo_try_unique(&block)) {
        assert(!makes_handle);
        data[0] = 2;
    }
    memrt__meminfo_release(&block);
    model_join(other);
}

int main(void)
{
    prove_beside_release(false);
    prove_beside_release(true);
    assert(destroyed == 2 && frees == 2);
    return 0;
}
