#ifndef MEMRT_ALLOC_POOL_H
#define MEMRT_ALLOC_POOL_H

#include "runtime/alloc/allocator.h"

/// Make the pool ready, before anything is allocated from it. Once.
void memrt__pool_start(void);

/// Whether blocks of an allocator are the pool's.
bool memrt__is_pool(const memrt_allocator_t *allocator);

#endif
