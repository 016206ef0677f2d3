#include "api/checked_slots.h"
#include "api/plain_table.h"
#include "api/verify_policy.h"

void memrt__checked_policy_acquire(memrt_policy_t *policy)
{
    memrt__verify_policy("policy_acquire", policy);
    memrt__plain_table.policy_acquire(policy);
}

void memrt__checked_policy_release(memrt_policy_t *policy)
{
    memrt__verify_policy("policy_release", policy);
    memrt__plain_table.policy_release(policy);
}

const char *memrt__checked_policy_name(const memrt_policy_t *policy)
{
    memrt__verify_known_policy("policy_name", policy);
    return memrt__plain_table.policy_name(policy);
}

size_t memrt__checked_policy_alignment(const memrt_policy_t *policy)
{
    memrt__verify_known_policy("policy_alignment", policy);
    return memrt__plain_table.policy_alignment(policy);
}

uint32_t memrt__checked_policy_index(const memrt_policy_t *policy)
{
    memrt__verify_known_policy("policy_index", policy);
    return memrt__plain_table.policy_index(policy);
}

int memrt__checked_policy_option(const memrt_policy_t *policy, size_t index, memrt_option_t *out)
{
    memrt__verify_known_policy("policy_option", policy);
    return memrt__plain_table.policy_option(policy, index, out);
}

memrt_status_t memrt__checked_policy_option_set(memrt_policy_t *policy, const char *name,
                                                const char *value, char *why, size_t length)
{
    memrt__verify_policy("policy_option_set", policy);
    return memrt__plain_table.policy_option_set(policy, name, value, why, length);
}

memrt_status_t memrt__checked_policy_placement(const memrt_policy_t *policy,
                                               memrt_placement_asked_t *out)
{
    memrt__verify_report_policy("policy_placement", policy);
    return memrt__plain_table.policy_placement(policy, out);
}

memrt_status_t memrt__checked_policy_reset(memrt_policy_t *policy, size_t *bytes, char *why,
                                           size_t length)
{
    memrt__verify_source_policy("policy_reset", policy);
    return memrt__plain_table.policy_reset(policy, bytes, why, length);
}

memrt_status_t memrt__checked_stats_read(const memrt_policy_t *policy, memrt_stats_t *out)
{
    memrt__verify_report_policy("stats_read", policy);
    return memrt__plain_table.stats_read(policy, out);
}

memrt_status_t memrt__checked_reference_counts(const memrt_policy_t *policy,
                                               memrt_reference_counts_t *out)
{
    memrt__verify_report_policy("reference_counts", policy);
    return memrt__plain_table.reference_counts(policy, out);
}

memrt_status_t memrt__checked_stats_sizes(const memrt_policy_t *policy, memrt_sizes_t *out)
{
    memrt__verify_report_policy("stats_sizes", policy);
    return memrt__plain_table.stats_sizes(policy, out);
}

void memrt__checked_stats_reset_peak(memrt_policy_t *policy)
{
    memrt__verify_report_policy("stats_reset_peak", policy);
    memrt__plain_table.stats_reset_peak(policy);
}

size_t memrt__checked_explain_shortage(const memrt_policy_t *policy, size_t size, char *text,
                                       size_t length)
{
    memrt__verify_report_policy("explain_shortage", policy);
    return memrt__plain_table.explain_shortage(policy, size, text, length);
}

memrt_status_t memrt__checked_hook_add(const memrt_hook_t *hook, uint64_t *id)
{
    if (hook->struct_size >= sizeof(*hook)) {
        memrt__verify_source_policy("hook_add", hook->policy);
    }
    return memrt__plain_table.hook_add(hook, id);
}

memrt_status_t memrt__checked_fail_allocations(const memrt_failure_plan_t *plan)
{
    if (plan != NULL && plan->struct_size >= sizeof(*plan)) {
        memrt__verify_source_policy("fail_allocations", plan->policy);
        memrt__verify_optional_scope("fail_allocations", plan->scope);
    }
    return memrt__plain_table.fail_allocations(plan);
}

/// Verify the object of a limit. Both NULL: the process. Both given is a failure of the call.
static void verify_limited(const char *call, const memrt_policy_t *policy,
                           const memrt_scope_t *scope)
{
    memrt__verify_report_policy(call, policy);
    memrt__verify_optional_scope(call, scope);
}

memrt_status_t memrt__checked_limit_set(memrt_policy_t *policy, memrt_scope_t *scope,
                                        uint64_t bytes)
{
    verify_limited("limit_set", policy, scope);
    return memrt__plain_table.limit_set(policy, scope, bytes);
}

memrt_status_t memrt__checked_limit_set_soft(memrt_policy_t *policy, memrt_scope_t *scope,
                                             uint64_t bytes)
{
    verify_limited("limit_set_soft", policy, scope);
    return memrt__plain_table.limit_set_soft(policy, scope, bytes);
}

memrt_status_t memrt__checked_limit_read(const memrt_policy_t *policy, const memrt_scope_t *scope,
                                         memrt_limit_t *out)
{
    verify_limited("limit_read", policy, scope);
    return memrt__plain_table.limit_read(policy, scope, out);
}
