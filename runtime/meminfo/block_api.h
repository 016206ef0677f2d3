#ifndef MEMRT_MEMINFO_BLOCK_API_H
#define MEMRT_MEMINFO_BLOCK_API_H

#include <stddef.h>

#include <memrt/meminfo.h>
#include <memrt/status.h>

/// Blocks addressed by their data pointer: the slots of memrt_api_t with the same names, some of
/// which NumPy's memory handler calls. block_alloc.h has the slots that allocate.

void *memrt__block_api_realloc(void *policy, void *data, size_t size);
void memrt__block_api_free(void *policy, void *data, size_t size);
memrt_status_t memrt__block_api_try_expand(void *data, size_t size) MEMRT_MUST_CHECK;
size_t memrt__block_api_usable_size(const void *data);
memrt_status_t memrt__block_api_meminfo(void *data, memrt_meminfo_t **out) MEMRT_MUST_CHECK;

#endif
