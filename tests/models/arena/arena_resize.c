/// Model: one thread frees the newest block, and another thread grows an older block, in place if
/// the bytes behind the block are free again.

#include "tests/models/arena/arena.h"

static size_t *newest;

static void *free_newest(void *context)
{
    model_end_block(newest, 2);
    return context;
}

int main(void)
{
    model_arena();
    size_t *block = arena_alloc(&arena, 16, 16);
    *block = 1;
    newest = arena_alloc(&arena, BLOCK_BYTES, 16);
    *newest = 2;
    pthread_t other = model_thread(free_newest, NULL);
    if (resize_in_place(&arena, block, 16, BLOCK_BYTES)) {
        block[2] = 3; /* the place of the newest block */
    }
    model_join(other);
    assert(*block == 1);
    return 0;
}
