#include "runtime/policy/policy_sweep.h"

#include "runtime/alloc/heap/heap.h"
#include "runtime/base/shield.h"
#include "runtime/os/lock.h"
#include "runtime/policy/policy_memory.h"
#include "runtime/policy/policy_table.h"
#include "runtime/policy/scope_tree.h"
#include "runtime/stats/retire.h"
#include "runtime/stats/stats.h"

/// Return true if allocations from the policy are still possible, or callers know its base by this
/// index.
static bool is_still_usable(const memrt_policy_t *policy)
{
    if (!memrt__policy_is_subpolicy(policy) || !memrt__policy_has_references(policy->base)) {
        return memrt__policy_has_references(policy);
    }
    return memrt__is_fork_account(policy)
               ? policy->base->index == policy->account.index
               : memrt__policy_has_references(policy) || memrt__scope_is_held(policy->scope);
}

size_t memrt__subpolicies_gone; /* written under the lock of rank POLICIES */

static void unlink_subpolicy(memrt_policy_t *subpolicy)
{
    if (subpolicy->scope != NULL) {
        memrt_policy_t **link = &subpolicy->scope->subpolicies;
        while (*link != subpolicy) {
            MEMRT__ASSERT(*link != NULL);
            link = &(*link)->next_in_scope;
        }
        *link = subpolicy->next_in_scope;
    }
    MEMRT__ASSERT(subpolicy->base->subpolicies != 0);
    subpolicy->base->subpolicies--;
    memrt__own_add(&memrt__subpolicies_gone, 1);
}

/// Remove a policy from the table and add the policy to the list `dead`. Under the lock of rank
/// POLICIES.
static void remove_policy(memrt_policy_t *policy, memrt_policy_t **dead)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_POLICIES);
    MEMRT__ASSERT(memrt__policies[policy->account.index] == policy);
    MEMRT__ASSERT(policy->subpolicies == 0 && policy != memrt__policy_default());
    memrt__stats_retire(&policy->account);
    memrt__policies[policy->account.index] = NULL;
    if (memrt__policy_is_subpolicy(policy)) {
        unlink_subpolicy(policy);
    }
    policy->next_dead = *dead;
    *dead = policy;
}

/// Move dead policies from the table to the list `dead`: subpolicies if `subpolicies`, else base
/// policies. Base policies without references stop caching. Under the lock of rank POLICIES.
static void collect_dead_policies(bool subpolicies, memrt_policy_t **dead)
{
    for (uint32_t index = 1; index < memrt__policy_table_end; index++) {
        memrt_policy_t *policy = memrt__policies[index];
        if (policy == NULL || memrt__policy_is_subpolicy(policy) != subpolicies ||
            is_still_usable(policy)) {
            continue;
        }
        if (!subpolicies) {
            memrt__heap_close(&policy->allocator);
        }
        /* One reading is enough: without references, live blocks only decrease. */
        if (policy->subpolicies == 0 && memrt__stats_is_idle(&policy->account)) {
            remove_policy(policy, dead);
        }
    }
}

static void destroy_policy(memrt_policy_t *policy)
{
    MEMRT__KEEP_ERRNO;
    if (!memrt__policy_is_subpolicy(policy)) {
        memrt__allocator_destroy(&policy->allocator);
    }
    memrt__policy_memory_free(policy);
}

void memrt__policy_sweep(void)
{
    memrt_policy_t *dead = NULL;
    memrt__lock(MEMRT__RANK_POLICIES);
    collect_dead_policies(true, &dead);
    collect_dead_policies(false, &dead);
    memrt__unlock(MEMRT__RANK_POLICIES);
    while (dead != NULL) {
        memrt_policy_t *policy = dead;
        dead = policy->next_dead;
        destroy_policy(policy);
    }
}
