#ifndef MEMRT_ALLOC_PLACED_PLACED_H
#define MEMRT_ALLOC_PLACED_PLACED_H

#include <stdbool.h>

#include <memrt/allocator/placement.h>

#include "runtime/base/compiler.h"

/// Placed allocator: mappings from a large-object cache of its own, so that a mapping is reused
/// only by requests with the same placement. The cache calls the allocator for each mapping that it
/// hands out, and the allocator places the pages then.

/// See memrt_api_t.allocator_placed.
memrt_status_t memrt__placed_new(const memrt_placement_options_t *options, memrt_allocator_t *out,
                                 char *why, size_t length) MEMRT_MUST_CHECK;

/// Fill in the settings and refusals of a placed allocator. Returns false for any other allocator.
bool memrt__placed_asked(const memrt_allocator_t *allocator, memrt_placement_asked_t *out);

/// Stop caching in a placed allocator. Does nothing for any other allocator.
void memrt__placed_close(const memrt_allocator_t *allocator);

#endif
