#ifndef MEMRT_POLICY_SCOPE_H
#define MEMRT_POLICY_SCOPE_H

#include <memrt/scope.h>

#include "runtime/base/slow_path.h"
#include "runtime/policy/policy.h"
#include "runtime/policy/scope_tree.h"
#include "runtime/stats/stats.h"

/// Scopes of threads: open, enter and leave, and the policy for a request in a scope. scope_tree.h
/// has the scopes themselves.

/// Register the scope slot of thread records: a new record has closed homes, and a thread that ends
/// leaves its scope. Called once, at the start of the runtime.
void memrt__scope_start(void);

/// Implementations of the memrt_api_t functions with the same names.
memrt_status_t memrt__scope_open(memrt_scope_t *parent, const char *name,
                                 memrt_scope_t **out) MEMRT_MUST_CHECK;
memrt_status_t memrt__scope_enter(memrt_scope_t *scope, memrt_scope_t **before) MEMRT_MUST_CHECK;
memrt_scope_t *memrt__scope_current(void);
memrt_status_t memrt__scope_policy(memrt_scope_t *scope, memrt_policy_t *policy,
                                   memrt_policy_t **out) MEMRT_MUST_CHECK;

/// Return true if `scope` is a scope with references. `scope` may be any address.
bool memrt__scope_is_live(const memrt_scope_t *scope);

/// Return true if `scope` is a scope with references or live blocks. `scope` may be any address.
bool memrt__scope_is_known(const memrt_scope_t *scope);

#endif
