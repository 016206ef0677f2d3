#ifndef MEMRT_POLICY_POLICY_H
#define MEMRT_POLICY_POLICY_H

#include <memrt/policy.h>

#include "runtime/policy/policy_table.h"

/// Policies: make, acquire and release.

/// Make the default policy at index 0, according to the options. Call once, before any other
/// function.
void memrt__policy_start(void);

/// Implementations of the memrt_api_t functions with the same names.
memrt_status_t memrt__policy_new(const memrt_policy_options_t *options,
                                 memrt_policy_t **out) MEMRT_MUST_CHECK;
void memrt__policy_acquire(memrt_policy_t *policy);
void memrt__policy_release(memrt_policy_t *policy);
memrt_policy_t *memrt__policy_at(uint32_t index);

memrt_status_t
memrt__policy_default_set_allocator(const memrt_allocator_t *allocator) MEMRT_MUST_CHECK;

/// Start guard pages if a policy with `limits` needs guard pages. Redzones replace guard pages in
/// checking mode. Failure: returns false when out of memory.
bool memrt__policy_start_guards(const memrt__limits_t *limits) MEMRT_MUST_CHECK;

/// Return true if `policy` is a policy with references. `policy` may be any address.
bool memrt__policy_is_held(const memrt_policy_t *policy);

/// Return true if `policy` is a policy with references, subpolicies or live blocks. `policy` may be
/// any address.
bool memrt__policy_is_known(const memrt_policy_t *policy);

#endif
