#include "runtime/policy/subpolicy.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/os/lock.h"
#include "runtime/policy/policy_memory.h"
#include "runtime/policy/policy_sweep.h"
#include "runtime/policy/scope_tree.h"

static void fill_subpolicy(memrt_policy_t *part, memrt_policy_t *base, memrt_scope_t *scope)
{
    *part = (memrt_policy_t){
        .account = {.shared = &part->shared,
                    .policy = &base->level,
                    .scope = scope == NULL ? NULL : &scope->level},
        .shared.sizes = part->shared_sizes,
        .allocator = base->allocator,
        .alignment = base->alignment,
        .tiny = base->tiny,
        .quick = base->quick,
        .limits = base->limits,
        .base = base,
        .scope = scope,
    };
    memcpy(part->name, base->name, sizeof(part->name));
}

static memrt_policy_t *find_subpolicy(const memrt_policy_t *base, const memrt_scope_t *scope)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_POLICIES);
    memrt_policy_t *part = scope->parts;
    while (part != NULL && (part->base != base || memrt__is_fork_account(part))) {
        part = part->next_part;
    }
    return part;
}

void memrt__subpolicy_put(memrt_policy_t *part, memrt_policy_t *base, memrt_scope_t *scope,
                          uint32_t index)
{
    MEMRT__ASSERT(base->base == base && part->base == NULL);
    fill_subpolicy(part, base, scope);
    memrt__policy_put(part, index);
    memrt__account_enter(&part->account);
    base->parts++;
    if (scope != NULL) {
        part->next_part = scope->parts;
        scope->parts = part;
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
    memrt_policy_t *part = find_subpolicy(base, scope);
    uint32_t index = memrt__policy_free_index();
    if (part == NULL && index < MEMRT__ACCOUNTS) {
        part = fresh;
        memrt__subpolicy_put(part, base, scope, index);
    }
    memrt__unlock(MEMRT__RANK_POLICIES);
    return part;
}

memrt_policy_t *memrt__subpolicy_get(memrt_policy_t *base, memrt_scope_t *scope)
{
    if (!memrt__lock_or_fork(MEMRT__RANK_POLICIES)) {
        return NULL;
    }
    memrt_policy_t *part = find_subpolicy(base, scope);
    memrt__unlock(MEMRT__RANK_POLICIES);
    memrt_policy_t *fresh = part == NULL ? memrt__policy_memory_alloc() : NULL;
    if (fresh == NULL) {
        return part;
    }
    part = enter_subpolicy(fresh, base, scope);
    if (part == NULL && !memrt__lock_is_forking()) {
        memrt__policy_sweep();
        part = enter_subpolicy(fresh, base, scope);
    }
    if (part != fresh) {
        free(fresh);
    }
    MEMRT__ASSERT(part == NULL || (part->base == base && part->scope == scope));
    return part;
}
