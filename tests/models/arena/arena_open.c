/// Model: threads allocate from an arena whose only chunk is full. Each thread opens a chunk, or
/// finds the chunk of another thread by the current chunk or on the ring. Each block belongs to one
/// thread.

#include "tests/models/arena/arena.h"

int main(void)
{
    model_arena();
    arena.first.state = MAKE_STATE(CHUNK_BYTES, 1);
    pthread_t second = model_thread(model_use_block, (void *)2);
    pthread_t third = model_thread(model_use_block, (void *)3);
    model_use_block((void *)1);
    model_join(second);
    model_join(third);
    return 0;
}
