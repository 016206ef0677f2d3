#include "runtime/policy/scope.h"

#include <stdlib.h>

#include "runtime/os/lock.h"
#include "runtime/policy/home.h"
#include "runtime/policy/policy_sweep.h"
#include "runtime/policy/subpolicy.h"

/// Make room for a scope by destroying the oldest unused scope. Returns true if there was room;
/// another thread may have used the room since.
static bool make_room(void)
{
    memrt__policy_sweep();
    return memrt__scope_tree_destroy_unused();
}

memrt_status_t memrt__scope_open(memrt_scope_t *parent, const char *name, memrt_scope_t **out)
{
    if (name == NULL || name[0] == '\0' || !memrt__is_name(name)) {
        return MEMRT_EINVAL;
    }
    memrt_scope_t *fresh = memrt__scope_tree_alloc(parent, name);
    if (fresh == NULL) {
        return MEMRT_ENOMEM;
    }
    memrt_scope_t *scope = memrt__scope_tree_find_or_add(fresh);
    while (scope == NULL && make_room()) {
        scope = memrt__scope_tree_find_or_add(fresh);
    }
    if (scope != fresh) {
        free(fresh);
    }
    if (scope == NULL) {
        return MEMRT_ELIMIT;
    }
    MEMRT__ASSERT(memrt__scope_is_held(scope) && scope->parent == parent);
    *out = scope;
    return MEMRT_OK;
}

memrt_status_t memrt__scope_enter(memrt_scope_t *scope, memrt_scope_t **before)
{
    memrt__thread_t *self = memrt__thread_self();
    if (self == NULL) {
        return MEMRT_ENOMEM;
    }
    if (before != NULL) {
        *before = self->scope.current;
    }
    self->scope.current = scope;
    memrt__home_clear_all(self);
    return MEMRT_OK;
}

/// Leave the scope of a thread that ended inside of the scope.
static void leave_scope(memrt__thread_t *thread)
{
    thread->scope.current = NULL;
    memrt__home_close_all(thread);
}

void memrt__scope_start(void)
{
    static const memrt__thread_module_t module = {
        {[MEMRT__THREAD_NEW] = memrt__home_close_all, [MEMRT__THREAD_RESET] = leave_scope}};
    memrt__thread_add_module(&module);
}

memrt_scope_t *memrt__scope_current(void)
{
    return memrt__self->scope.current;
}

/// Return a new reference to the subpolicy of `policy` in `scope`. The first reference to a
/// subpolicy acquires the base and the scope.
memrt_status_t memrt__scope_policy(memrt_scope_t *scope, memrt_policy_t *policy,
                                   memrt_policy_t **out)
{
    memrt_policy_t *base = memrt__policy_or_default(policy)->base;
    MEMRT__ASSERT(memrt__scope_is_held(scope));
    memrt_policy_t *subpolicy = memrt__subpolicy_get(base, scope);
    if (subpolicy == NULL) {
        return MEMRT_ENOMEM;
    }
    if (memrt__fetch_add_relaxed(&subpolicy->refs, 1) == 0) {
        memrt__policy_acquire(base);
        memrt__scope_acquire(scope);
    }
    *out = subpolicy;
    return MEMRT_OK;
}

bool memrt__scope_is_live(const memrt_scope_t *scope)
{
    memrt__lock(MEMRT__RANK_POLICIES);
    bool live = memrt__scope_tree_has(scope) && memrt__scope_is_held(scope);
    memrt__unlock(MEMRT__RANK_POLICIES);
    return live;
}

/// Return true if a scope has live blocks, or may still get new blocks. Under the lock of rank
/// POLICIES.
static bool has_used_subpolicy(const memrt_scope_t *scope)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_POLICIES);
    const memrt_policy_t *subpolicy = scope->subpolicies;
    while (subpolicy != NULL && !memrt__policy_is_used(subpolicy)) {
        subpolicy = subpolicy->next_in_scope;
    }
    return subpolicy != NULL;
}

bool memrt__scope_is_known(const memrt_scope_t *scope)
{
    memrt__lock(MEMRT__RANK_POLICIES);
    bool known =
        memrt__scope_tree_has(scope) && (memrt__scope_is_held(scope) || has_used_subpolicy(scope));
    memrt__unlock(MEMRT__RANK_POLICIES);
    return known;
}
