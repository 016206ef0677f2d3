#include <time.h>

#include "runtime/os/os.h"

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * MEMRT__SECOND + (uint64_t)now.tv_nsec;
}

uint64_t memrt__os_wall_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

uint64_t memrt__os_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t memrt__os_tick_ns(void)
{
    return read_clock(CLOCK_MONOTONIC_COARSE);
}
