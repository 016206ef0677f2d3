#include "runtime/event/block_fault.h"

#include "runtime/policy/scope_tree.h"

static bool is_inside(const memrt_scope_t *scope, const memrt_scope_t *around)
{
    while (scope != NULL && scope != around) {
        scope = scope->parent;
    }
    return scope != NULL;
}

/// Implements memrt__fault_match_fn. Pointers of the plan are compared only, so that a policy and a
/// scope may end before the plan.
static bool is_in_plan(const memrt_failure_plan_t *plan, const memrt_policy_t *policy)
{
    return (plan->policy == NULL || plan->policy == policy->base) &&
           (plan->scope == NULL || is_inside(policy->scope, plan->scope));
}

bool memrt__block_fault_count(unsigned kind, size_t size, const memrt_policy_t *policy)
{
    return memrt__fault_count(&(memrt__fault_request_t){kind, size, policy, is_in_plan});
}
