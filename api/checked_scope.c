#include "api/checked_slots.h"
#include "api/plain_table.h"
#include "api/verify_policy.h"

memrt_status_t memrt__checked_scope_open(memrt_scope_t *parent, const char *name,
                                         memrt_scope_t **out)
{
    memrt__verify_optional_scope("scope_open", parent);
    return memrt__plain_table.scope_open(parent, name, out);
}

void memrt__checked_scope_acquire(memrt_scope_t *scope)
{
    memrt__verify_scope("scope_acquire", scope);
    memrt__plain_table.scope_acquire(scope);
}

void memrt__checked_scope_release(memrt_scope_t *scope)
{
    memrt__verify_scope("scope_release", scope);
    memrt__plain_table.scope_release(scope);
}

memrt_status_t memrt__checked_scope_enter(memrt_scope_t *scope, memrt_scope_t **before)
{
    memrt__verify_optional_scope("scope_enter", scope);
    return memrt__plain_table.scope_enter(scope, before);
}

memrt_status_t memrt__checked_scope_policy(memrt_scope_t *scope, memrt_policy_t *policy,
                                           memrt_policy_t **out)
{
    memrt__verify_scope("scope_policy", scope);
    memrt__verify_source_policy("scope_policy", policy);
    return memrt__plain_table.scope_policy(scope, policy, out);
}

memrt_scope_t *memrt__checked_scope_next(memrt_scope_t *scope)
{
    memrt__verify_optional_scope("scope_next", scope);
    return memrt__plain_table.scope_next(scope);
}

memrt_scope_t *memrt__checked_scope_parent(const memrt_scope_t *scope)
{
    memrt__verify_known_scope("scope_parent", scope);
    return memrt__plain_table.scope_parent(scope);
}

const char *memrt__checked_scope_name(const memrt_scope_t *scope)
{
    memrt__verify_known_scope("scope_name", scope);
    return memrt__plain_table.scope_name(scope);
}

uint32_t memrt__checked_scope_id(const memrt_scope_t *scope)
{
    memrt__verify_known_scope("scope_id", scope);
    return memrt__plain_table.scope_id(scope);
}

memrt_status_t memrt__checked_scope_stats(const memrt_scope_t *scope, memrt_stats_t *out)
{
    memrt__verify_known_scope("scope_stats", scope);
    return memrt__plain_table.scope_stats(scope, out);
}

void memrt__checked_scope_sizes(const memrt_scope_t *scope, uint64_t *out)
{
    memrt__verify_known_scope("scope_sizes", scope);
    memrt__plain_table.scope_sizes(scope, out);
}

memrt_status_t memrt__checked_scope_stats_sizes(const memrt_scope_t *scope, memrt_sizes_t *out)
{
    memrt__verify_known_scope("scope_stats_sizes", scope);
    return memrt__plain_table.scope_stats_sizes(scope, out);
}

void memrt__checked_scope_reset_peak(memrt_scope_t *scope)
{
    memrt__verify_known_scope("scope_reset_peak", scope);
    memrt__plain_table.scope_reset_peak(scope);
}
