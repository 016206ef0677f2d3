#ifndef MEMRT_MEMINFO_RAW_H
#define MEMRT_MEMINFO_RAW_H

#include "runtime/meminfo/meminfo.h"

/// Blocks known by their data pointer: the block_* functions of memrt_api_t.

void *memrt__raw_alloc(void *policy, size_t size);
void *memrt__raw_calloc(void *policy, size_t count, size_t size);
void *memrt__raw_realloc(void *policy, void *data, size_t size);
void memrt__raw_free(void *policy, void *data, size_t size);
memrt_status_t memrt__raw_meminfo(void *data, memrt_meminfo_t **out) MEMRT_MUST_CHECK;

/// As memrt__raw_alloc() outside of scopes: what a block is resized to is born where that was.
void *memrt__raw_alloc_from(memrt_policy_t *policy, size_t size);

#endif
