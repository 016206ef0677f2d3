/// What the benchmark asks of memrt's table; loaded by ctypes, compiled against memrt's headers.

#include <memrt/memrt.h>

#include "raw.h"

/// The functions that are a NumPy handler.
void table_raw(const memrt_api_t *api, raw_t *out)
{
    *out = (raw_t){api->block_alloc, api->block_calloc, api->block_realloc, api->block_free};
}

/// Bytes kept for reuse.
size_t table_cached(const memrt_api_t *api)
{
    memrt_stats_t stats = {.struct_size = sizeof stats};
    return api->stats_read(NULL, &stats) == MEMRT_OK ? (size_t)stats.cached : SIZE_MAX;
}

/// Give back what is kept for reuse.
void table_release_unused(const memrt_api_t *api)
{
    api->release_unused();
}
