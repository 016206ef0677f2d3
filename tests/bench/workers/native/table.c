/// Calls of memrt's table for the benchmark. Loaded by ctypes, compiled against memrt's headers.

#include <memrt/memrt.h>

#include <time.h>

#include "raw.h"
#include "subject.h"

/// Store the functions of a NumPy handler in `out`.
void table_raw(const memrt_api_t *api, raw_t *out)
{
    *out = (raw_t){api->block_alloc, api->block_calloc, api->block_realloc, api->block_free};
}

/// Return the bytes cached for reuse, or SIZE_MAX on failure.
size_t table_cached(const memrt_api_t *api)
{
    memrt_stats_t stats = {.struct_size = sizeof stats};
    return api->stats_read(NULL, &stats) == MEMRT_OK ? (size_t)stats.cached : SIZE_MAX;
}

/// Return cached memory to the system.
void table_release_unused(const memrt_api_t *api)
{
    api->release_unused();
}

/// Acquire and release `count` references through the inline functions of the headers.
/// Works like `references` in loops.c. Returns nanoseconds of processor time, or 0 without memory.
uint64_t inlined_references(const subject_t *subject, size_t size, size_t count)
{
    memrt_meminfo_t *mi = subject->alloc(size);
    struct timespec begin, end;
    if (mi == NULL)
        return 0;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    for (size_t i = 0; i < count; i++) {
        memrt_meminfo_acquire(mi);
        memrt_meminfo_release(NULL, mi); /* never the last reference, so the table is not used */
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    subject->release(mi);
    return (uint64_t)(end.tv_sec - begin.tv_sec) * 1000000000u + (uint64_t)end.tv_nsec -
           (uint64_t)begin.tv_nsec;
}

/// Enter a new scope on the calling thread. Returns nonzero on success.
int table_enter_scope(const memrt_api_t *api)
{
    memrt_scope_t *scope;
    return api->scope_open(NULL, "bench", &scope) == MEMRT_OK &&
           api->scope_enter(scope, NULL) == MEMRT_OK;
}
