#ifndef MEMRT_POLICY_SCOPE_TREE_H
#define MEMRT_POLICY_SCOPE_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include <memrt/scope.h>

#include "runtime/base/atomics.h"
#include "runtime/stats/tally.h"

/// The tree of scopes. Each scope has a subpolicy for each policy used in the scope.
///
/// A subpolicy is a policy with its own account; settings and allocator come from its base. A block
/// names the subpolicy in place of the policy. The header already holds the subpolicy index, so
/// scopes need no extra header space. A free on any thread credits the scope of the allocation.
/// Allocation and free cost the same as outside of scopes.
///
/// A subpolicy lives while a block of the subpolicy is live, or while both its scope and its base
/// have references. A scope without references stays for reports, until a new scope needs the room
/// among MEMRT_SCOPES_MAX scopes. The enclosing scope keeps the counts of a destroyed scope.
struct memrt_scope {
    memrt__level_t level;          ///< aggregate; `up`: the enclosing scope
    struct memrt_scope *parent;    ///< fixed; owns a reference; NULL: no parent
    struct memrt_scope *next;      ///< under the lock of rank POLICIES; all scopes, oldest first
    memrt_policy_t *subpolicies;   ///< under the lock of rank POLICIES; linked by next_in_scope
    size_t refs;                   ///< atomic; 0: kept for reports only
    size_t inner;                  ///< under the lock of rank POLICIES; scopes with this parent
    uint32_t id;                   ///< fixed; from 1 on, never reused
    char name[MEMRT_NAME_MAX + 1]; ///< fixed
};

static inline bool memrt__scope_is_held(const memrt_scope_t *scope)
{
    return memrt__load_acquire(&scope->refs) != 0;
}

/// Implementations of the memrt_api_t functions with the same names.
void memrt__scope_acquire(memrt_scope_t *scope);
void memrt__scope_release(memrt_scope_t *scope);
memrt_scope_t *memrt__scope_next(memrt_scope_t *scope);

/// Allocate a scope outside of the tree. Failure: returns NULL when out of memory.
memrt_scope_t *memrt__scope_tree_alloc(memrt_scope_t *parent, const char *name);

/// Return a new reference to the scope with the parent and name of `fresh`; add `fresh` if the list
/// has no such scope. Failure: returns NULL if there are too many scopes.
memrt_scope_t *memrt__scope_tree_find_or_add(memrt_scope_t *fresh);

/// Destroy the oldest unused scope, unless another thread has made room already. Returns true if
/// there was room; another thread may have used the room since.
bool memrt__scope_tree_destroy_unused(void);

/// Return the first scope; `next` links the rest. Under the lock of rank POLICIES.
const memrt_scope_t *memrt__scope_tree_first(void);

/// Return the number of scopes. Under the lock of rank POLICIES.
size_t memrt__scope_tree_count(void);

/// Return true if `scope` is in the list. `scope` may be any address. Under the lock of rank
/// POLICIES.
bool memrt__scope_tree_has(const memrt_scope_t *scope);

#if MEMRT_DEBUG
/// Return whether the invariants of the scope tree hold. Takes the lock of rank POLICIES.
bool memrt__scope_tree_is_valid(void);
#endif

#endif
