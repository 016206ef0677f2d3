#ifndef MEMRT_DEVICE_PINNED_H
#define MEMRT_DEVICE_PINNED_H

#include <stdbool.h>

#include "runtime/alloc/allocator.h"

/// Pinned memory of the host, each block a call of the CUDA driver. Without a driver every request
/// is refused. In a forked child what was inherited is not given back.
extern const memrt_allocator_t memrt__pinned_allocator;

/// Whether blocks of an allocator are pinned, also between the fences of a guard.
bool memrt__is_pinned(const memrt_allocator_t *allocator);

#endif
