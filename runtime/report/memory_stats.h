#ifndef MEMRT_REPORT_MEMORY_STATS_H
#define MEMRT_REPORT_MEMORY_STATS_H

#include <memrt/observe/memory_stats.h>

/// Memory behind all blocks: requested and allocated bytes, pages and addresses.

/// Implement memrt_api_t.memory_stats.
memrt_status_t memrt__memory_stats_read(memrt_memory_stats_t *out) MEMRT_MUST_CHECK;

#endif
