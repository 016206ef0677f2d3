/// Test doubles for the harness: a fast and a slow allocator with a simulated clock.
///
/// Only the allocators advance the clock, by 10 or 100 ticks per allocation.

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

static _Atomic int allocated;
static _Atomic int freed;

/// Count allocations, without a simulated clock.
void *alloc_counted(size_t size)
{
    allocated++;
    return malloc(size);
}

void release(void *object)
{
    freed++;
    free(object);
}

int allocations(void)
{
    return allocated;
}

int frees(void)
{
    return freed;
}
