/// Allocators that say what they take, by a clock that only they move: for tests of the harness.

#include <stdint.h>
#include <stdlib.h>

static uint64_t ticks;

uint64_t fake_clock(void)
{
    return ticks;
}

void *alloc_fast(size_t size)
{
    ticks += 10;
    return malloc(size);
}

void *alloc_slow(size_t size)
{
    ticks += 100;
    return malloc(size);
}

void release(void *object)
{
    free(object);
}
