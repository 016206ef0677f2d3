#ifndef MEMRT_CUDA_PINNED_CACHE_H
#define MEMRT_CUDA_PINNED_CACHE_H

#include <stdbool.h>

#include "runtime/cuda/context.h"

/// Cache of freed pinned memory: the driver needs about a millisecond to pin a block, and as long
/// to free it.
///
/// Invariant: no device uses a cached block. A caller that adds a block has waited for the devices.
/// MEMRT_CACHE switches the cache off. A forked child never uses the cache, because each request
/// for pinned memory fails earlier there.

/// Return the bytes to request from the driver for a block of `size` bytes. The results are few
/// sizes, so that later requests find a cached block. Large sizes are not changed; without a cache,
/// no size is.
size_t memrt__pinned_cache_round(size_t size);

/// Remove a block of exactly `size` bytes, a result of memrt__pinned_cache_round(), from the cache
/// and return the block. Returns NULL if the cache has none.
void *memrt__pinned_cache_take(size_t size);

/// Add a block of `size` bytes. All cached blocks have at most `most` bytes afterwards: the driver
/// frees the oldest. Returns false if the caller must free the block.
bool memrt__pinned_cache_add(const memrt__context_t *context, void *data, size_t size, size_t most);

/// Return the bytes of all cached blocks.
size_t memrt__pinned_cache_bytes(void);

/// Free all cached blocks by calls of the driver. Returns the bytes of the blocks that the driver
/// freed.
size_t memrt__pinned_cache_empty(const memrt__context_t *context);

#if MEMRT_DEBUG
/// Return whether the sum of the sizes of all cached blocks is right.
bool memrt__pinned_cache_is_valid(void);
#endif

#endif
