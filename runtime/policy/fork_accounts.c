#include "runtime/policy/fork_accounts.h"

#include "runtime/os/lock.h"
#include "runtime/policy/home.h"
#include "runtime/policy/policy_memory.h"
#include "runtime/policy/policy_table.h"
#include "runtime/policy/subpolicy.h"
#include "runtime/stats/stats.h"

/// Move the shared counters to the fork subpolicy. Threads without a record counted the inherited
/// blocks there.
static void move_shared_counters(memrt_policy_t *from, memrt_policy_t *to)
{
    to->shared = from->shared;
    from->shared = MEMRT__SHARED_SHARD;
}

/// Split a policy: a fork subpolicy takes the old account, and the policy gets a fresh account.
/// Failure: returns false when out of memory or out of indices.
static bool split_policy(memrt_policy_t *policy)
{
    MEMRT__ASSERT(!memrt__is_fork_account(policy));
    uint32_t index = memrt__policy_free_index();
    memrt_policy_t *fork_subpolicy = index < MEMRT__ACCOUNTS ? memrt__policy_memory_map() : NULL;
    if (fork_subpolicy == NULL) {
        return false;
    }
    memrt__subpolicy_put(fork_subpolicy, policy->base, policy->scope, policy->account.index);
    fork_subpolicy->account.origin = MEMRT__FORK_ACCOUNT;
    move_shared_counters(policy, fork_subpolicy);
    memrt__policy_put(policy, index);
    MEMRT__ASSERT(memrt__policies[fork_subpolicy->account.index] == fork_subpolicy);
    return true;
}

void memrt__fork_accounts_forked(void)
{
    uint32_t limit = memrt__policy_limit();
    memrt__thread_t *self = memrt__thread_or_null();
    if (self != NULL) {
        memrt__home_clear_all(self); /* policies get other indices, and so other shards */
    }
    memrt__lock(MEMRT__RANK_POLICIES);
    for (uint32_t index = 0; index < limit; index++) {
        memrt_policy_t *policy = memrt__policies[index];
        if (policy != NULL && !memrt__is_fork_account(policy)) {
            bool is_mixed = !memrt__stats_is_settled(&policy->account) && !split_policy(policy);
            policy->account.origin = is_mixed ? MEMRT__MIXED : MEMRT__OWN;
        }
    }
    memrt__unlock(MEMRT__RANK_POLICIES);
}
