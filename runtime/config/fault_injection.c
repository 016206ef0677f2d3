#include "runtime/config/fault_injection.h"

#include <string.h>

#include "runtime/base/size.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"

unsigned memrt__slow_path;

enum {
    ALL_KINDS = MEMRT_FAULT_BLOCK | MEMRT_FAULT_MEMINFO | MEMRT_FAULT_RESIZE | MEMRT_FAULT_DEVICE |
    MEMRT_FAULT_RECORD
};

/* Under the lock of rank FAULT: */
static memrt_failure_plan_t current_plan;
static uint64_t plan_thread;
static memrt_failure_t failures;

/// Return whether the selection of a plan is valid.
static bool is_plan(const memrt_failure_plan_t *plan)
{
    return (plan->max_size == 0 || plan->min_size <= plan->max_size) &&
           (plan->kinds & ~(unsigned)ALL_KINDS) == 0;
}

memrt_status_t memrt__fault_set(const memrt_failure_plan_t *plan)
{
    memrt_failure_plan_t all = {0};
    if (plan != NULL) {
        if (plan->struct_size < offsetof(memrt_failure_plan_t, min_size)) {
            return MEMRT_EINVAL;
        }
        memcpy(&all, plan, memrt__size_min(plan->struct_size, sizeof(all)));
    }
    if (!is_plan(&all)) {
        return MEMRT_EINVAL;
    }
    memrt__lock(MEMRT__RANK_FAULT);
    failures = (memrt_failure_t){.struct_size = sizeof(failures)};
    plan_thread = memrt__os_thread_id();
    current_plan = all;
    memrt__slow_path_set(MEMRT__SLOW_FAILURE, plan != NULL);
    memrt__unlock(MEMRT__RANK_FAULT);
    return MEMRT_OK;
}

uint64_t memrt__fault_points(void)
{
    memrt__lock(MEMRT__RANK_FAULT);
    uint64_t counted = failures.points;
    memrt__unlock(MEMRT__RANK_FAULT);
    return counted;
}

memrt_status_t memrt__fault_read(memrt_failure_t *out)
{
    size_t size = out->struct_size;
    if (size < sizeof(out->struct_size)) {
        return MEMRT_EINVAL;
    }
    memrt__lock(MEMRT__RANK_FAULT);
    memrt_failure_t now = failures;
    memrt__unlock(MEMRT__RANK_FAULT);
    now.struct_size = size;
    memcpy(out, &now, memrt__size_min(size, sizeof(now)));
    return MEMRT_OK;
}

static bool is_planned_failure(uint64_t point)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_FAULT);
    MEMRT__ASSERT(point != 0);
    if (current_plan.nth == 0 || point < current_plan.nth) {
        return false;
    }
    return point == current_plan.nth ||
           (current_plan.every != 0 && (point - current_plan.nth) % current_plan.every == 0);
}

static bool has_selected_size(size_t size)
{
    return size >= current_plan.min_size &&
           (current_plan.max_size == 0 || size <= current_plan.max_size);
}

static bool has_selected_policy(const memrt__fault_request_t *request)
{
    if (current_plan.policy == NULL && current_plan.scope == NULL) {
        return true;
    }
    return request->match != NULL && request->match(&current_plan, request->policy);
}

static bool is_selected(const memrt__fault_request_t *request)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_FAULT);
    return (!current_plan.this_thread_only || plan_thread == memrt__os_thread_id()) &&
           (current_plan.kinds == 0 || (current_plan.kinds & request->kind) != 0) &&
           has_selected_size(request->size) && has_selected_policy(request);
}

bool memrt__fault_count(const memrt__fault_request_t *request)
{
    if (!memrt__lock_or_fork(MEMRT__RANK_FAULT)) {
        return false;
    }
    bool due = is_selected(request) && is_planned_failure(++failures.points);
    if (due && failures.failed++ == 0) {
        failures.kind = request->kind;
        failures.size = request->size;
    }
    memrt__unlock(MEMRT__RANK_FAULT);
    return due;
}

bool memrt__fault_count_record(void)
{
    return memrt__fault_count(&(memrt__fault_request_t){.kind = MEMRT_FAULT_RECORD});
}

bool memrt__fault_count_device(size_t size)
{
    return memrt__fault_count(&(memrt__fault_request_t){.kind = MEMRT_FAULT_DEVICE, .size = size});
}
