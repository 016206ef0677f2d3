#ifndef MEMRT_ALLOC_GUARD_H
#define MEMRT_ALLOC_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/allocator.h>
#include <memrt/status.h>

/// A wrapper that fences blocks, remembers where they were made and freed, and keeps those that
/// were freed for a while. What it finds wrong by itself ends the process; checking asks it first,
/// because it knows more of a block.

/// See memrt_api_t.allocator_guard.
memrt_status_t memrt__guard_new(const memrt_allocator_t *upstream,
                                memrt_allocator_t *out) MEMRT_MUST_CHECK;

/// Whether blocks of an allocator lie between fences.
bool memrt__is_guard(const memrt_allocator_t *allocator);

/// What a guard wraps.
const memrt_allocator_t *memrt__guard_upstream(const memrt_allocator_t *guard);

/// Whether a live block is not as its guard left it, or not of that size and alignment; `text` says
/// in a sentence what is wrong.
bool memrt__guard_fault(const void *ptr, size_t size, size_t align, char *text, size_t length);

/// Where a live block was made, as lines that begin with a line's end; "" when it is not known.
void memrt__guard_tell(const void *ptr, char *text, size_t length);

/// The same of the freed block that `address` lies in, and where it was freed. False: the guard
/// keeps no such block.
bool memrt__guard_tell_dead(const memrt_allocator_t *guard, uintptr_t address, char *text,
                            size_t length);

/// Abort if a freed block that the guard keeps was written to.
void memrt__guard_verify_dead(const memrt_allocator_t *guard);

/// Verify all freed blocks and give them to the upstream.
void memrt__guard_empty(const memrt_allocator_t *guard);

#endif
