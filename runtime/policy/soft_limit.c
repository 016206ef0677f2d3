#include "runtime/policy/soft_limit.h"

#include "runtime/base/size.h"
#include "runtime/config/options.h"
#include "runtime/os/lock.h"
#include "runtime/policy/memory_limit.h"
#include "runtime/policy/policy.h"
#include "runtime/policy/policy_allocators.h"
#include "runtime/policy/reclaim.h"
#include "runtime/policy/scope_tree.h"
#include "runtime/stats/gauges.h"

size_t memrt__soft_limits_above;

/* Under the lock of rank OPTIONS: limits at the last computation of a soft limit of "auto" or a
   percentage. */
static size_t followed_system, followed_limit;

static memrt_status_t set_soft_limit(memrt__level_t *level, size_t bytes)
{
    if (bytes != SIZE_MAX && bytes > memrt__level_limit(level)) {
        return MEMRT_EINVAL;
    }
    return memrt__limit_change(level, memrt__level_soft(level), bytes, memrt__level_set_soft);
}

/// Set the soft limit of the process. The lock orders the call and memrt__soft_limit_follow().
static memrt_status_t set_process_soft_limit(size_t bytes)
{
    memrt__lock(MEMRT__RANK_OPTIONS);
    memrt_status_t status = set_soft_limit(&memrt__process, bytes);
    if (status == MEMRT_OK) {
        memrt__store_relaxed(&memrt__options.soft_limit, bytes);
    }
    memrt__unlock(MEMRT__RANK_OPTIONS);
    return status;
}

memrt_status_t memrt__soft_limit_set(memrt_policy_t *policy, memrt_scope_t *scope, uint64_t bytes)
{
    if (policy != NULL && scope != NULL) {
        return MEMRT_EINVAL;
    }
    memrt__level_t *level = memrt__limit_level(policy, scope);
    memrt_status_t status = level == &memrt__process ? set_process_soft_limit((size_t)bytes)
                                                     : set_soft_limit(level, (size_t)bytes);
    memrt__limit_wake();
    return status;
}

/// Return the bytes of an option value that is "auto" or a percentage.
static size_t choose_soft_limit(size_t option)
{
    size_t limit = memrt__level_limit(&memrt__process);
    followed_system = memrt__limit_of_system();
    followed_limit = limit;
    size_t soft = option == MEMRT__LIMIT_AUTO && limit != SIZE_MAX
                      ? limit / 10 * 9
                      : memrt__limit_choose(option, followed_system);
    if (option == MEMRT__LIMIT_AUTO && limit == SIZE_MAX) {
        soft = soft / 10 * 9;
    }
    return memrt__size_min(soft, limit);
}

memrt_status_t memrt__soft_limit_follow_option(void)
{
    size_t option = memrt__load_relaxed(&memrt__options.soft_limit);
    return set_soft_limit(&memrt__process,
                          memrt__limit_is_relative(option) ? choose_soft_limit(option) : option);
}

void memrt__soft_limit_follow(void)
{
    memrt__lock(MEMRT__RANK_OPTIONS);
    if (memrt__limit_is_relative(memrt__load_relaxed(&memrt__options.soft_limit)) &&
        (memrt__level_limit(&memrt__process) != followed_limit ||
         memrt__limit_of_system() != followed_system)) {
        (void)!memrt__soft_limit_follow_option(); /* fails only without counters */
    }
    memrt__unlock(MEMRT__RANK_OPTIONS);
}

/// Findings about all soft limits.
typedef struct findings {
    size_t above; ///< soft limits that are exceeded, and stay so
    bool risen;   ///< a rise that reclaim callbacks did not end
} findings_t;

/// Return whether the use of a level is low, after the calling thread has published its frees.
static bool became_low(void *context)
{
    memrt__stats_rest_gauges();
    return memrt__level_is_low(context);
}

/// Release cached memory and run reclaim callbacks. Returns whether the use is low then.
static bool free_memory(memrt__level_t *level)
{
    (void)memrt__policy_release_unused();
    size_t soft = memrt__level_soft(level), excess = memrt__level_used(level) - (soft - soft / 20);
    memrt__reclaim_until((ptrdiff_t)excess < 0 ? 0 : excess, became_low, level);
    return became_low(level);
}

/// Handle a rise of one level, if any. A rise that reclaim callbacks end is over at once, unless
/// other threads made the use rise again.
static void handle_level(memrt__level_t *level, findings_t *findings)
{
    bool risen = memrt__level_update_soft(level);
    if (risen && free_memory(level)) {
        risen = memrt__level_update_soft(level);
    }
    findings->above += memrt__load_relaxed(&level->soft_state) == MEMRT__SOFT_ABOVE;
    findings->risen |= risen;
}

static void handle_policies(findings_t *findings)
{
    uint32_t indices = memrt__policy_limit();
    for (uint32_t index = 0; index < indices; index++) {
        memrt_policy_t *policy = memrt__policy_at(index);
        if (policy != NULL) {
            handle_level(&policy->base->level, findings);
            memrt__policy_release(policy);
        }
    }
}

static void handle_scopes(findings_t *findings)
{
    memrt_scope_t *scope = memrt__scope_next(NULL);
    while (scope != NULL) {
        handle_level(&scope->level, findings);
        memrt_scope_t *next = memrt__scope_next(scope);
        memrt__scope_release(scope);
        scope = next;
    }
}

bool memrt__soft_limits_handle(void)
{
    findings_t findings = {0, false};
    if (memrt__soft_limit_exists()) {
        handle_level(&memrt__process, &findings);
        handle_policies(&findings);
        handle_scopes(&findings);
    }
    memrt__store_relaxed(&memrt__soft_limits_above, findings.above);
    return findings.risen;
}
