#ifndef MEMRT_MEMINFO_TINY_API_H
#define MEMRT_MEMINFO_TINY_API_H

#include <stddef.h>

#include <memrt/meminfo.h>
#include <memrt/status.h>

/// Tiny blocks addressed by their data pointer: parts of the slots block_free, block_realloc,
/// block_meminfo, block_try_expand and block_usable_size. Each function aborts if the block is not
/// live.

/// Free the tiny block of the holder, or release the MemInfo if one exists. Also free a block with
/// MEMRT__ALIGN_OFFSET: the fast path of block_free only compares the address.
void memrt__tiny_api_free(void *policy, void *data);

/// Implement memrt__block_api_realloc() for tiny blocks.
void *memrt__tiny_api_realloc(void *data, size_t size);

/// Implement memrt__block_api_try_expand() and memrt__block_api_usable_size() for tiny blocks.
memrt_status_t memrt__tiny_api_try_expand(void *data, size_t size) MEMRT_MUST_CHECK;
size_t memrt__tiny_api_usable_size(const void *data);

/// Implement memrt__block_api_meminfo() for tiny blocks.
memrt_status_t memrt__tiny_api_meminfo(void *data, memrt_meminfo_t **out) MEMRT_MUST_CHECK;

#endif
