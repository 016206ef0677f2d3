#include "runtime/base/failure.h"

#include "runtime/base/lock.h"
#include "runtime/base/os.h"

unsigned memrt__watch;

/* Under the lock of rank FAILURE: */
static memrt_failure_plan_t plan_now;
static uint64_t plan_thread;
static uint64_t points;

void memrt__failure_set(const memrt_failure_plan_t *plan)
{
    memrt__lock(MEMRT__RANK_FAILURE);
    points = 0;
    plan_thread = memrt__os_thread_id();
    plan_now = plan == NULL ? (memrt_failure_plan_t){0} : *plan;
    memrt__watch_set(MEMRT__WATCH_FAILURE, plan != NULL);
    memrt__unlock(MEMRT__RANK_FAILURE);
}

uint64_t memrt__failure_points(void)
{
    memrt__lock(MEMRT__RANK_FAILURE);
    uint64_t counted = points;
    memrt__unlock(MEMRT__RANK_FAILURE);
    return counted;
}

static bool is_hit(uint64_t point)
{
    if (plan_now.nth == 0 || point < plan_now.nth) {
        return false;
    }
    return point == plan_now.nth ||
           (plan_now.every != 0 && (point - plan_now.nth) % plan_now.every == 0);
}

bool memrt__failure_count_one(void)
{
    memrt__lock(MEMRT__RANK_FAILURE);
    bool counts = !plan_now.this_thread_only || plan_thread == memrt__os_thread_id();
    bool due = counts && is_hit(++points);
    memrt__unlock(MEMRT__RANK_FAILURE);
    return due;
}
