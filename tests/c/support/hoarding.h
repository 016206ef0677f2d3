#ifndef MEMRT_TESTS_SUPPORT_HOARDING_H
#define MEMRT_TESTS_SUPPORT_HOARDING_H

#include <memrt/allocator.h>
#include <memrt/status.h>

/// An allocator that keeps freed blocks, full of rubbish, and gives them out again to requests of
/// the same size and alignment. It has no alloc_zeroed and no realloc.
memrt_status_t hoarding_new(const memrt_allocator_t *upstream, memrt_allocator_t *out);

#endif
