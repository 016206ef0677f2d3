#ifndef MEMRT_POLICY_POLICY_ALLOCATORS_H
#define MEMRT_POLICY_POLICY_ALLOCATORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/allocator/placement.h>
#include <memrt/policy.h>

#include "runtime/base/check.h"

/// Allocators of all policies: cached memory, and the freed blocks that guards keep.

/// Return the bytes that the allocator of `policy` caches, or 0 for the heap, whose cached memory
/// serves all policies. NULL: the cached bytes of all allocators.
size_t memrt__policy_cached(const memrt_policy_t *policy);

/// Return true if no block of a base policy is live, in any scope. A block that another thread
/// allocates meanwhile may be missed.
bool memrt__policy_is_empty(const memrt_policy_t *policy);

/// Give back the memory that only `policy` keeps. Returns bytes: 0 for memory of the heap.
size_t memrt__policy_release_own(const memrt_policy_t *policy);

/// See memrt_api_t.policy_placement.
memrt_status_t memrt__policy_placement(const memrt_policy_t *policy, memrt_placement_asked_t *out);

/// Abort if a freed block in the guard of any policy was written to.
void memrt__policy_verify_dead(void);

/// Write the call stacks of the allocation and free of the freed block around `address`. Each line
/// begins with a newline.
///
/// Failure: returns false, with an empty text, if no guard of a policy keeps the freed block.
bool memrt__policy_explain_dead(uintptr_t address, char *text, size_t length);

/// Give the cached memory of all allocators back to the system; returns bytes.
size_t memrt__policy_release_unused(void);

/// See memrt_api_t.policy_option_set.
memrt_status_t memrt__policy_set_option(memrt_policy_t *policy, const char *name, const char *value,
                                        char *why, size_t length) MEMRT_MUST_CHECK;

#if MEMRT_DEBUG
/// Return whether the invariants of the guards and arenas of all policies hold. Takes the locks of
/// ranks POLICIES and QUARANTINE.
bool memrt__policy_allocators_is_valid(void);
#endif

#endif
