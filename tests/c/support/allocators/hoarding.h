#ifndef MEMRT_TESTS_SUPPORT_HOARDING_H
#define MEMRT_TESTS_SUPPORT_HOARDING_H

#include <memrt/allocator.h>
#include <memrt/status.h>

/// Create an allocator that fills freed blocks with rubbish, keeps them, and reuses them for
/// requests of the same size and alignment. The allocator has no alloc_zeroed and no realloc.
memrt_status_t hoarding_new(const memrt_allocator_t *upstream, memrt_allocator_t *out);

#endif
