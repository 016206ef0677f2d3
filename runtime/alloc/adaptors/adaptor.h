#ifndef MEMRT_ALLOC_ADAPTORS_ADAPTOR_H
#define MEMRT_ALLOC_ADAPTORS_ADAPTOR_H

#include <memrt/allocator/adaptor.h>

/// Adaptors: wrappers that add a property to an allocator.

/// See memrt_api_t.allocator_adaptor.
memrt_status_t memrt__adaptor_new(const memrt_allocator_t *upstream,
                                  const memrt_adaptor_options_t *options,
                                  memrt_allocator_t *out) MEMRT_MUST_CHECK;

#endif
