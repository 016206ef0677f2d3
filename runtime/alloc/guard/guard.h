#ifndef MEMRT_ALLOC_GUARD_GUARD_H
#define MEMRT_ALLOC_GUARD_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/allocator.h>
#include <memrt/status.h>

#include "runtime/base/check.h"

/// Guard: an allocator wrapper that adds redzones, records call stacks, and keeps freed blocks in a
/// quarantine for a while. A fault that the guard itself finds aborts the process. Checking mode
/// queries the guard first, because the guard knows more about a block.

/// See memrt_api_t.allocator_guard.
memrt_status_t memrt__guard_new(const memrt_allocator_t *upstream,
                                memrt_allocator_t *out) MEMRT_MUST_CHECK;

/// Return true if an allocator is a guard, so that its blocks have redzones.
bool memrt__is_guard(const memrt_allocator_t *allocator);

/// Allocate a block from a guard. The first `unused` bytes are padding that neither the user nor
/// the guard touches. With a large alignment, most of the block is padding.
///
/// Failure: returns NULL when out of memory.
void *memrt__guard_alloc(const memrt_allocator_t *guard, size_t unused, size_t size, size_t align,
                         bool zeroed);

/// Return the allocator that a guard wraps.
const memrt_allocator_t *memrt__guard_upstream(const memrt_allocator_t *guard);

/// Return true if a live block has a damaged redzone, or another size or alignment. `text` is then
/// a sentence about the fault.
bool memrt__guard_fault(const void *ptr, size_t size, size_t align, char *text, size_t length);

/// Write the call stack of the allocation of a live block. Each line begins with a newline. The
/// text is empty if the call stack is unknown.
void memrt__guard_explain(const void *ptr, char *text, size_t length);

/// Write the call stacks of the allocation and free of the freed block around `address`.
///
/// Failure: returns false if the guard keeps no such block.
bool memrt__guard_explain_dead(const memrt_allocator_t *guard, uintptr_t address, char *text,
                               size_t length);

/// Abort if a freed block in the quarantine of the guard was written to.
void memrt__guard_verify_dead(const memrt_allocator_t *guard);

/// Verify all freed blocks and give the blocks to the upstream.
void memrt__guard_empty(const memrt_allocator_t *guard);

#if MEMRT_DEBUG
/// Return whether the invariants of a guard and its quarantine hold.
bool memrt__guard_is_valid(const memrt_allocator_t *guard);
#endif

#endif
