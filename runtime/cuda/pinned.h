#ifndef MEMRT_CUDA_PINNED_H
#define MEMRT_CUDA_PINNED_H

#include <stdbool.h>

#include "runtime/alloc/allocator.h"

/// Allocator of pinned host memory, from the CUDA driver. Every request fails without a driver. A
/// forked child does not free inherited blocks.
extern const memrt_allocator_t memrt__pinned_allocator;

/// Return whether an allocator's blocks are pinned, directly or inside the redzones of a guard.
bool memrt__is_pinned(const memrt_allocator_t *allocator);

#endif
