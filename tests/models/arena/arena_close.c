/// Model: two threads use a block each. Then one thread gives the memory of empty chunks to the
/// upstream, and the upstream overwrites the memory. No thread has a block there at the time.

#include "tests/models/arena/arena.h"

static void *use_block(void *context)
{
    model_end_block(model_block((size_t)context), (size_t)context);
    return NULL;
}

int main(void)
{
    model_arena();
    pthread_t other = model_thread(use_block, (void *)2);
    use_block((void *)1);
    (void)close_if_empty(&arena, &arena.first);
    use_block((void *)3);
    model_join(other);
    return 0;
}
