/// Model: two threads use a block each. Then one thread gives the memory of empty chunks to the
/// upstream, and the upstream overwrites the memory. No thread has a block there at the time.

#include "tests/models/arena/arena.h"

int main(void)
{
    model_arena();
    pthread_t other = model_thread(model_use_block, (void *)2);
    model_use_block((void *)1);
    (void)close_if_empty(&arena, &arena.first);
    model_use_block((void *)3);
    model_join(other);
    return 0;
}
