#include "runtime/config/fault_injection.h"

#include "runtime/os/lock.h"
#include "runtime/os/os.h"

unsigned memrt__slow_path;

/* Under the lock of rank FAULT: */
static memrt_failure_plan_t current_plan;
static uint64_t plan_thread;
static uint64_t request_count;

void memrt__fault_set(const memrt_failure_plan_t *plan)
{
    memrt__lock(MEMRT__RANK_FAULT);
    request_count = 0;
    plan_thread = memrt__os_thread_id();
    current_plan = plan == NULL ? (memrt_failure_plan_t){0} : *plan;
    memrt__slow_path_set(MEMRT__SLOW_FAILURE, plan != NULL);
    memrt__unlock(MEMRT__RANK_FAULT);
}

uint64_t memrt__fault_points(void)
{
    memrt__lock(MEMRT__RANK_FAULT);
    uint64_t counted = request_count;
    memrt__unlock(MEMRT__RANK_FAULT);
    return counted;
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

bool memrt__fault_count_one(void)
{
    if (!memrt__lock_or_fork(MEMRT__RANK_FAULT)) {
        return false;
    }
    bool counts = !current_plan.this_thread_only || plan_thread == memrt__os_thread_id();
    bool due = counts && is_planned_failure(++request_count);
    memrt__unlock(MEMRT__RANK_FAULT);
    return due;
}
