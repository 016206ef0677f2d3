/// Model: two threads write to a block, and release or free the block. Both threads have a home for
/// the block, and the last of them puts the block into its thread cache, after every write.

#include "tests/models/model.h"

#include "runtime/alloc/heap/thread_cache.h"

static bool give_block(memrt__thread_t *self, size_t class, memrt__shard_t *shard, unsigned kind,
                       size_t size, void *block);

/* The thread cache belongs to a lower layer. */
#define memrt__bin_give_counted give_block

#include "tests/models/block/block.h"

#include "runtime/meminfo/block_api.c"

static memrt__thread_t owner; /* both threads have equal homes */

static bool give_block(memrt__thread_t *self, size_t class, memrt__shard_t *shard, unsigned kind,
                       size_t size, void *given)
{
    (void)class, (void)shard, (void)kind, (void)size;
    assert(self == &owner && given == &block);
    frees++;
    data[0] = data[1] = 0;
    return true;
}

static void *write_and_release(void *context)
{
    memrt__self = &owner;
    data[0] = 1;
    memrt__meminfo_release(&block);
    return context;
}

static size_t model_state(const memrt_meminfo_t *mi)
{
    return mi->policy | (size_t)mi->kind << 16 | (size_t)mi->align_log2 << 24 |
           (size_t)mi->flags << 32;
}

int main(void)
{
    make_the_block(0);
    block.dtor = NULL;
    block.refct = 2;
    owner.homes[0].states[0] = owner.homes[0].states[1] = model_state(&block);
    memrt__self = &owner;
    pthread_t other = model_thread(write_and_release, NULL);
    data[1] = 1;
    free_block(&block);
    model_join(other);
    assert(frees == 1);
    return 0;
}
