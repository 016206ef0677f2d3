#include "runtime/policy/policy_sweep.h"

#include "runtime/alloc/heap/heap.h"
#include "runtime/alloc/placed/placed.h"
#include "runtime/base/shield.h"
#include "runtime/base/size.h"
#include "runtime/base/slow_path.h"
#include "runtime/os/lock.h"
#include "runtime/policy/home.h"
#include "runtime/policy/policy_memory.h"
#include "runtime/policy/policy_table.h"
#include "runtime/policy/scope_tree.h"
#include "runtime/stats/retire.h"

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

static void unlink_from_base(memrt_policy_t *subpolicy)
{
    memrt_policy_t *next = subpolicy->next_of_base;
    MEMRT__ASSERT(subpolicy->base->subpolicies != 0 && *subpolicy->link_of_base == subpolicy);
    *subpolicy->link_of_base = next;
    if (next != NULL) {
        next->link_of_base = subpolicy->link_of_base;
    }
    subpolicy->base->subpolicies--;
}

static void unlink_from_scope(memrt_policy_t *subpolicy)
{
    memrt_policy_t **link = &subpolicy->scope->subpolicies;
    while (*link != subpolicy) {
        MEMRT__ASSERT(*link != NULL);
        link = &(*link)->next_in_scope;
    }
    *link = subpolicy->next_in_scope;
}

static void unlink_subpolicy(memrt_policy_t *subpolicy)
{
    if (subpolicy->scope != NULL) {
        unlink_from_scope(subpolicy);
    }
    unlink_from_base(subpolicy);
}

/// Remove a policy from the table and add the policy to the list `dead`. Under the lock of rank
/// POLICIES.
static void remove_policy(memrt_policy_t *policy, memrt_policy_t **dead)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_POLICIES);
    MEMRT__ASSERT(policy->subpolicies == 0 && policy != memrt__policy_default());
    memrt__home_forget(policy);
    memrt__stats_retire(&policy->account);
    memrt__policy_remove(policy);
    if (memrt__policy_is_subpolicy(policy)) {
        unlink_subpolicy(policy);
    } else if (memrt__is_slow(MEMRT__SLOW_CLOSE)) {
        memrt__policy_follow_guards();
    }
    policy->next_dead = *dead;
    *dead = policy;
}

/// Move a policy without references and live blocks from the table to the list `dead`. A base
/// policy without references stops caching. Returns true if the policy waits: only live blocks of
/// its own keep the policy. Under the lock of rank POLICIES.
static bool collect_or_wait(memrt_policy_t *policy, memrt_policy_t **dead)
{
    if (is_still_usable(policy)) {
        return false;
    }
    if (!memrt__policy_is_subpolicy(policy)) {
        memrt__heap_close(&policy->allocator);
        memrt__placed_close(&policy->allocator);
    }
    if (policy->subpolicies != 0) {
        return false;
    }
    /* One reading is enough: without references, live blocks only decrease. */
    if (!memrt__stats_is_idle(&policy->account)) {
        return true;
    }
    remove_policy(policy, dead);
    return false;
}

/// Collect all dead policies: subpolicies if `subpolicies`, else base policies.
static void collect_dead_policies(bool subpolicies, memrt_policy_t **dead)
{
    for (uint32_t index = 1; index < memrt__policy_table_end; index++) {
        memrt_policy_t *policy = memrt__policies[index];
        if (policy != NULL && memrt__policy_is_subpolicy(policy) == subpolicies) {
            collect_or_wait(policy, dead);
        }
    }
}

/// Collect dead subpolicies of a base policy, the latest first, up to the first that waits.
static void collect_dead_subpolicies(const memrt_policy_t *base, memrt_policy_t **dead)
{
    memrt_policy_t *next = base->first_subpolicy;
    bool waits = false;
    for (uint32_t step = 0; step < MEMRT__SWEEP_STEPS && next != NULL && !waits; step++) {
        memrt_policy_t *subpolicy = next;
        next = subpolicy->next_of_base;
        waits = collect_or_wait(subpolicy, dead);
    }
}

static void destroy_policy(memrt_policy_t *policy)
{
    MEMRT__KEEP_ERRNO;
    memrt__level_end_limits(&policy->level);
    if (!memrt__policy_is_subpolicy(policy)) {
        memrt__allocator_destroy(&policy->allocator);
    }
    memrt__policy_memory_free(policy);
}

static void destroy_policies(memrt_policy_t *dead)
{
    while (dead != NULL) {
        memrt_policy_t *policy = dead;
        dead = policy->next_dead;
        destroy_policy(policy);
    }
}

void memrt__policy_sweep(void)
{
    memrt_policy_t *dead = NULL;
    memrt__lock(MEMRT__RANK_POLICIES);
    collect_dead_policies(true, &dead);
    collect_dead_policies(false, &dead);
    memrt__unlock(MEMRT__RANK_POLICIES);
    destroy_policies(dead);
}

void memrt__policy_sweep_at(uint32_t index)
{
    memrt_policy_t *dead = NULL;
    memrt__lock(MEMRT__RANK_POLICIES);
    memrt_policy_t *policy = memrt__policies[index];
    if (policy != NULL && !is_still_usable(policy)) {
        collect_dead_subpolicies(policy, &dead);
        collect_or_wait(policy, &dead);
    }
    memrt__unlock(MEMRT__RANK_POLICIES);
    destroy_policies(dead);
}

/* Under the lock of rank POLICIES: */
static uint32_t last_swept;   /* index that the last visit of memrt__policy_sweep_some() ended at */
static size_t extra_readings; /* shards read beyond MEMRT__SWEEP_READINGS per call */

/// Collect dead policies at the next indices of the table, up to the first that waits.
static void collect_next_dead_policies(memrt_policy_t **dead)
{
    uint32_t waits = 0;
    uint32_t steps = (uint32_t)memrt__size_min(MEMRT__SWEEP_STEPS, memrt__policy_table_end - 1);
    for (uint32_t step = 0; step < steps && waits < MEMRT__SWEEP_WAITS; step++) {
        last_swept = last_swept + 1 < memrt__policy_table_end ? last_swept + 1 : 1;
        memrt_policy_t *policy = memrt__policies[last_swept];
        waits += policy != NULL && collect_or_wait(policy, dead);
    }
}

void memrt__policy_sweep_some(void)
{
    memrt_policy_t *dead = NULL;
    memrt__lock(MEMRT__RANK_POLICIES);
    extra_readings -= memrt__size_min(extra_readings, MEMRT__SWEEP_READINGS);
    if (extra_readings == 0) {
        size_t before = memrt__stats_idle_readings;
        collect_next_dead_policies(&dead);
        extra_readings = memrt__stats_idle_readings - before;
    }
    memrt__unlock(MEMRT__RANK_POLICIES);
    destroy_policies(dead);
}
