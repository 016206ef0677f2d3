#include "runtime/policy/subpolicy.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/os/lock.h"
#include "runtime/policy/policy_memory.h"
#include "runtime/policy/policy_sweep.h"
#include "runtime/policy/scope_tree.h"

static void fill_subpolicy(memrt_policy_t *subpolicy, memrt_policy_t *base, memrt_scope_t *scope)
{
    *subpolicy = (memrt_policy_t){
        .account = {.shared = &subpolicy->shared,
                    .policy = &base->level,
                    .scope = scope == NULL ? NULL : &scope->level},
        .shared = MEMRT__SHARED_SHARD,
        .allocator = base->allocator,
        .alignment = base->alignment,
        .tiny = base->tiny,
        .fast = base->fast,
        .bump = base->bump,
        .base = base,
        .scope = scope,
    };
    memcpy(subpolicy->name, base->name, sizeof(subpolicy->name));
}

static memrt_policy_t *find_subpolicy(const memrt_policy_t *base, const memrt_scope_t *scope)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_POLICIES);
    memrt_policy_t *subpolicy = scope->subpolicies;
    while (subpolicy != NULL && (subpolicy->base != base || memrt__is_fork_account(subpolicy))) {
        subpolicy = subpolicy->next_in_scope;
    }
    return subpolicy;
}

static void link_to_base(memrt_policy_t *subpolicy, memrt_policy_t *base)
{
    memrt_policy_t *next = base->first_subpolicy;
    subpolicy->next_of_base = next;
    subpolicy->link_of_base = &base->first_subpolicy;
    if (next != NULL) {
        next->link_of_base = &subpolicy->next_of_base;
    }
    base->first_subpolicy = subpolicy;
    base->subpolicies++;
}

void memrt__subpolicy_put(memrt_policy_t *subpolicy, memrt_policy_t *base, memrt_scope_t *scope,
                          uint32_t index)
{
    MEMRT__ASSERT(base->base == base && subpolicy->base == NULL);
    fill_subpolicy(subpolicy, base, scope);
    memrt__policy_put(subpolicy, index);
    memrt__account_enter(&subpolicy->account);
    link_to_base(subpolicy, base);
    if (scope != NULL) {
        subpolicy->next_in_scope = scope->subpolicies;
        scope->subpolicies = subpolicy;
    }
}

/// Enter `fresh` as the subpolicy, unless another thread entered a subpolicy first. Returns the
/// entered subpolicy. Failure: returns NULL if no index is free, or a fork takes long.
static memrt_policy_t *enter_subpolicy(memrt_policy_t *fresh, memrt_policy_t *base,
                                       memrt_scope_t *scope)
{
    if (!memrt__lock_or_fork(MEMRT__RANK_POLICIES)) {
        return NULL;
    }
    memrt_policy_t *subpolicy = find_subpolicy(base, scope);
    uint32_t index = memrt__policy_free_index();
    if (subpolicy == NULL && index < MEMRT__ACCOUNTS) {
        subpolicy = fresh;
        memrt__subpolicy_put(subpolicy, base, scope, index);
    }
    memrt__unlock(MEMRT__RANK_POLICIES);
    return subpolicy;
}

memrt_policy_t *memrt__subpolicy_get(memrt_policy_t *base, memrt_scope_t *scope)
{
    if (!memrt__lock_or_fork(MEMRT__RANK_POLICIES)) {
        return NULL;
    }
    memrt_policy_t *subpolicy = find_subpolicy(base, scope);
    memrt__unlock(MEMRT__RANK_POLICIES);
    memrt_policy_t *fresh = subpolicy == NULL ? memrt__policy_memory_alloc() : NULL;
    if (fresh == NULL) {
        return subpolicy;
    }
    subpolicy = enter_subpolicy(fresh, base, scope);
    if (subpolicy == NULL && !memrt__lock_is_forking()) {
        memrt__policy_sweep();
        subpolicy = enter_subpolicy(fresh, base, scope);
    }
    if (subpolicy != fresh) {
        free(fresh);
    }
    MEMRT__ASSERT(subpolicy == NULL || (subpolicy->base == base && subpolicy->scope == scope));
    return subpolicy;
}
