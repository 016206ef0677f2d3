#ifndef MEMRT_ALLOC_POOL_H
#define MEMRT_ALLOC_POOL_H

#include "runtime/alloc/allocator.h"
#include "runtime/base/options.h"

/// Make the pool ready, before anything is allocated from it. Once.
void memrt__pool_start(void);

/// Whether blocks of an allocator are the pool's.
bool memrt__is_pool(const memrt_allocator_t *allocator);

/// Whether what the allocator keeps is kept for all policies.
bool memrt__is_shared_pool(const memrt_allocator_t *allocator);

/// The default allocator, which for large blocks goes by `limits`. The caller calls its destroy.
/// MEMRT_ENOMEM.
memrt_status_t memrt__limited_allocator(const memrt__limits_t *limits,
                                        memrt_allocator_t *out) MEMRT_MUST_CHECK;

/// Have an allocator that memrt__limited_allocator() made keep nothing from now on. Any other one:
/// nothing.
void memrt__pool_close(const memrt_allocator_t *allocator);

/// Options of the process were set, `before` stood: let what is kept follow.
void memrt__pool_follow(memrt__huge_t before);

#endif
