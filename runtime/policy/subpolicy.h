#ifndef MEMRT_POLICY_SUBPOLICY_H
#define MEMRT_POLICY_SUBPOLICY_H

#include "runtime/policy/policy_table.h"

/// Subpolicies: the accounts of policies inside of scopes, and fork accounts.

/// Return the subpolicy of `base` in `scope`, made on first use.
///
/// Ownership: the caller holds references to `base` and `scope`. The result has no new reference.
/// An unreferenced subpolicy stays valid for the thread while both references last and
/// memrt__subpolicies_gone is unchanged.
///
/// Failure: returns NULL when out of memory, when no index is free, or while a fork takes long.
memrt_policy_t *memrt__subpolicy_get(memrt_policy_t *base, memrt_scope_t *scope);

/// Enter `part`, all zero, at `index` as a subpolicy of `base`, in `scope` unless `scope` is NULL.
/// Under the lock of rank POLICIES.
void memrt__subpolicy_put(memrt_policy_t *part, memrt_policy_t *base, memrt_scope_t *scope,
                          uint32_t index);

#endif
