#ifndef MEMRT_TESTS_SUPPORT_MOVING_H
#define MEMRT_TESTS_SUPPORT_MOVING_H

#include <memrt/allocator.h>
#include <memrt/status.h>

/// Create an allocator whose realloc always moves the block, also when it shrinks, and overwrites
/// the old block.
memrt_status_t moving_new(const memrt_allocator_t *upstream, memrt_allocator_t *out);

#endif
