#ifndef MEMRT_POLICY_SCOPE_H
#define MEMRT_POLICY_SCOPE_H

#include <memrt/scope.h>

#include "runtime/base/slow_path.h"
#include "runtime/policy/policy.h"
#include "runtime/policy/policy_sweep.h"
#include "runtime/policy/scope_tree.h"
#include "runtime/stats/stats.h"

/// Scopes of threads: open, enter and leave, and the policy for a request in a scope. scope_tree.h
/// has the scopes themselves.

/// Care for the scopes of records: a thread that ends leaves its scope.
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

/// Slow path of memrt__policy_here(): look up the subpolicy and remember it in the thread record.
MEMRT__COLD memrt_policy_t *memrt__scope_look(memrt_policy_t *policy);

/// Return true if the thread record remembers the subpolicy for `policy`. The count of destroyed
/// subpolicies must be unchanged, because another subpolicy may reuse an address.
static inline bool memrt__scope_knows(const memrt__thread_t *self, const memrt_policy_t *policy)
{
    return self->scope.subpolicy_of == policy &&
           self->scope.subpolicies_gone == memrt__load_relaxed(&memrt__subpolicies_gone);
}

/// Return the policy for a request to `policy` (NULL: the default policy) on the calling thread.
/// The result is the subpolicy in the thread's scope, or `policy` outside of scopes.
///
/// Failure: returns `policy` if there is no memory or no free index for a subpolicy.
static inline memrt_policy_t *memrt__policy_here(memrt_policy_t *policy)
{
    memrt__thread_t *self = memrt__self;
    policy = memrt__policy_or_default(policy);
    if (MEMRT__LIKELY(!memrt__is_slow(MEMRT__SLOW_SCOPES)) || self == NULL) {
        return policy;
    }
    return MEMRT__LIKELY(memrt__scope_knows(self, policy)) ? self->scope.subpolicy
                                                           : memrt__scope_look(policy);
}

/// Return the fast path's counter slot for allocations from `policy` itself, without a scope
/// lookup. `policy` may be a subpolicy. `self` is the calling thread's record, or NULL. An empty
/// slot disables the fast path.
static inline memrt__home_t memrt__home_of(const memrt__thread_t *self,
                                           const memrt_policy_t *policy)
{
    if (MEMRT__UNLIKELY(self == NULL || !policy->fast)) {
        return (memrt__home_t){NULL, 0};
    }
    uint32_t account = policy->account.index;
    return (memrt__home_t){memrt__thread_shard(self, account), account};
}

/// Return the counter slot for memrt__policy_here(policy). The slot is empty, and the fast path
/// disabled, if the thread record does not remember the subpolicy.
static inline memrt__home_t memrt__home_here(const memrt__thread_t *self,
                                             const memrt_policy_t *policy)
{
    if (MEMRT__UNLIKELY(self == NULL || !memrt__scope_knows(self, policy))) {
        return (memrt__home_t){NULL, 0};
    }
    return (memrt__home_t){self->scope.subpolicy_shard, self->scope.subpolicy->account.index};
}

#endif
