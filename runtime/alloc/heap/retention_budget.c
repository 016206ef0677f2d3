#include "runtime/alloc/heap/retention_budget.h"

#include "runtime/base/atomics.h"
#include "runtime/base/size.h"
#include "runtime/os/os.h"

/* Relaxed; of concurrent readings of RSS, either result serves. */
static size_t budget = MEMRT__RETENTION_MIN;
static size_t next_reading; /* time at which the budget is out of date, in nanoseconds */

void memrt__retention_budget_update(uint64_t now)
{
    if (now >= memrt__load_relaxed(&next_reading)) {
        size_t share = memrt__os_resident() / MEMRT__RETENTION_SHARE;
        memrt__store_relaxed(&budget, memrt__size_max(share, MEMRT__RETENTION_MIN));
        memrt__store_relaxed(&next_reading, now + MEMRT__RETENTION_NS);
    }
}

size_t memrt__retention_budget(void)
{
    return memrt__load_relaxed(&budget);
}

#if MEMRT_DEBUG

bool memrt__retention_budget_is_valid(void)
{
    return MEMRT__HOLDS(memrt__retention_budget() >= MEMRT__RETENTION_MIN);
}

#endif
