#ifndef MEMRT_POLICY_SUBPOLICY_H
#define MEMRT_POLICY_SUBPOLICY_H

#include "runtime/policy/policy_table.h"

/// Subpolicies: a policy's account inside one scope. A subpolicy has the allocator and settings of
/// its base policy, and its own index in the policy table. A base policy has at most one subpolicy
/// per scope, and additional fork subpolicies for the accounts of fork_accounts.h.

/// Return the subpolicy of `base` in `scope`, and create the subpolicy on first use. Fork
/// subpolicies are never returned.
///
/// Ownership: the caller holds references to `base` and `scope`, and gets no reference to the
/// result. The result stays valid while both references last.
///
/// Failure: returns NULL when out of memory, when no index is free, or when a fork on another
/// thread takes long.
memrt_policy_t *memrt__subpolicy_get(memrt_policy_t *base, memrt_scope_t *scope);

/// Fill in `subpolicy`, which must be all zero, as a subpolicy of `base` in `scope`, and enter the
/// subpolicy in the policy table at `index`. `scope` is NULL for a fork subpolicy outside of
/// scopes. Under the lock of rank POLICIES.
void memrt__subpolicy_put(memrt_policy_t *subpolicy, memrt_policy_t *base, memrt_scope_t *scope,
                          uint32_t index);

#endif
