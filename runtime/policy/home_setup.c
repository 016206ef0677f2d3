#include "runtime/policy/home_setup.h"

#include "runtime/os/lock.h"
#include "runtime/policy/subpolicy.h"

/// Return the home to set next. The fast path compares with the first home first. As long as the
/// second home is unset, the policy of the first home moves to the second, and the policy used last
/// gets the first home. Further policies replace both homes in turn.
static memrt__home_t *choose_home(memrt__thread_t *self)
{
    if (memrt__home_is_unset(&self->homes[0])) {
        return &self->homes[0];
    }
    bool unset = memrt__home_is_unset(&self->homes[1]);
    /* Under the lock, memrt__home_forget() finds the policy in the one home or in the other. */
    if (unset && memrt__lock_or_fork(MEMRT__RANK_THREADS)) {
        memrt__store_relaxed(&self->homes[1].key, memrt__load_relaxed(&self->homes[0].key));
        memrt__home_copy(&self->homes[0], &self->homes[1]);
        memrt__unlock(MEMRT__RANK_THREADS);
        return &self->homes[0];
    }
    self->scope.replaced = 1 - self->scope.replaced;
    return &self->homes[self->scope.replaced];
}

/// Set a home with the key `named` and the data of `policy`, the policy in force for `named`.
static void set_home(memrt__thread_t *self, memrt_policy_t *named, const memrt_policy_t *policy)
{
    memrt__home_t of = memrt__home_of(self, policy);
    memrt__home_t *home = choose_home(self);
    memrt__store_relaxed(&home->key, MEMRT__NO_HOME);
    memrt__home_copy(&of, home);
    memrt__store_relaxed(&home->key, (size_t)named);
    if (memrt__policy_or_default(named) == memrt__policy_default()) {
        memrt__home_copy(&of, &self->homes[MEMRT__DEFAULT_HOME]);
    }
}

/// Return the policy in force for the policy that a caller names. NULL: no memory, or no free
/// index.
static memrt_policy_t *find_policy_in_force(const memrt__thread_t *self, memrt_policy_t *named)
{
    memrt_policy_t *policy = memrt__policy_or_default(named);
    bool inside = self->scope.current != NULL && !memrt__policy_is_subpolicy(policy);
    return inside ? memrt__subpolicy_get(policy, self->scope.current) : policy;
}

/// Return whether the thread can count for a policy without a new shard.
static bool can_count(const memrt__thread_t *self, const memrt_policy_t *policy)
{
    return memrt__thread_shard(self, policy->account.index) != NULL;
}

memrt_policy_t *memrt__home_make(memrt__thread_t *self, memrt_policy_t *named)
{
    if (memrt__policy_or_default(named)->base == memrt__policy_default()) {
        memrt__policy_finish_default();
    }
    memrt_policy_t *policy = self == &memrt__no_thread ? NULL : find_policy_in_force(self, named);
    if (policy == NULL) {
        return memrt__policy_or_default(named);
    }
    if (!policy->fast || can_count(self, policy)) {
        set_home(self, named, policy);
    }
    return policy;
}
