#ifndef MEMRT_ALLOC_HEAP_HEAP_H
#define MEMRT_ALLOC_HEAP_HEAP_H

#include "runtime/alloc/allocator.h"
#include "runtime/config/options.h"

/// Prepare the heap, before the first allocation from the heap. Call once.
void memrt__heap_start(void);

/// Return true if the blocks of an allocator come from the heap.
bool memrt__is_heap(const memrt_allocator_t *allocator);

/// Return true if the memory that an allocator caches serves all policies.
bool memrt__is_shared_heap(const memrt_allocator_t *allocator);

/// Make the default allocator with `limits` for large blocks.
///
/// Ownership: the caller calls `destroy` of `*out`.
///
/// Failure: returns MEMRT_ENOMEM.
memrt_status_t memrt__limited_allocator(const memrt__limits_t *limits,
                                        memrt_allocator_t *out) MEMRT_MUST_CHECK;

/// Stop caching in an allocator from memrt__limited_allocator(). Does nothing for other allocators.
void memrt__heap_close(const memrt_allocator_t *allocator);

/// Return whether an allocator is from memrt__limited_allocator().
bool memrt__has_limits(const memrt_allocator_t *allocator);

/// Change the limits of an allocator from memrt__limited_allocator(). memrt__heap_apply_limits()
/// then lets cached memory follow. Failure: returns false, with nothing changed: the allocator has
/// no cache, and another huge page mode.
bool memrt__heap_change_limits(const memrt_allocator_t *allocator, const memrt__limits_t *before,
                               const memrt__limits_t *limits) MEMRT_MUST_CHECK;
void memrt__heap_apply_limits(void);

/// Apply changed process options to cached memory. `before` is the huge page mode before the
/// change.
void memrt__heap_follow(memrt__huge_t before);

#endif
