/// Model: two threads request the MemInfo of a tiny block concurrently. Both threads get the same,
/// completely initialised MemInfo.

#define memrt__block_new_tiny block_new_tiny_by_allocator
#include "tests/models/block/block.h"
#undef memrt__block_new_tiny

static _Alignas(64) memrt_meminfo_t headers[2];
static size_t used;

memrt_meminfo_t *memrt__block_new_tiny(memrt_policy_t *policy, void *where, size_t size)
{
    (void)policy;
    memrt_meminfo_t *mi = &headers[memrt__fetch_add_relaxed(&used, 1)];
    mi->align_log2 = 6;
    mi->lead = MEMRT_HEADER_SIZE;
    mi->flags = MEMRT__FLAG_MEMINFO | MEMRT__FLAG_PROMOTED | MEMRT__FLAG_TINY;
    memrt__block_set_data(mi, where, size);
    mi->refct = 2;
    return mi;
}

#include "runtime/meminfo/tiny_api.c"

static struct {
    memrt__tiny_t head;
    char data[16];
} tiny;

static void *ask(void *context)
{
    memrt_meminfo_t *mi;
    assert(memrt__tiny_api_meminfo(tiny.data, &mi) == MEMRT_OK);
    assert(mi->data == tiny.data && mi->size == 3);
    *(memrt_meminfo_t **)context = mi;
    return NULL;
}

int main(void)
{
    memrt__policies[0] = &memrt__default_policy;
    tiny.head.word = memrt__tiny_word_of(0) + 3;
    memrt_meminfo_t *one, *two;
    pthread_t a = model_thread(ask, &one), b = model_thread(ask, &two);
    model_join(a);
    model_join(b);
    assert(one == two && memrt__meminfo_refcount(one) == 3);
    assert(frees == used - 1);
    return 0;
}
