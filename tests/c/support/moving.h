#ifndef MEMRT_TESTS_SUPPORT_MOVING_H
#define MEMRT_TESTS_SUPPORT_MOVING_H

#include <memrt/allocator.h>
#include <memrt/status.h>

/// An allocator whose realloc always moves, also when it shrinks, and spoils the old block.
memrt_status_t moving_new(const memrt_allocator_t *upstream, memrt_allocator_t *out);

#endif
