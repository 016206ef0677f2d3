#include "runtime/alloc/heap/pages/page_counts.h"

#include "runtime/alloc/heap/retention_budget.h"
#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/os/lock.h"

memrt__page_counts_t memrt__page_counts;

static memrt__page_counts_t *const counts = &memrt__page_counts;

void memrt__page_counts_purge(size_t units)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PAGE_HEAP);
    MEMRT__ASSERT(units <= counts->dirty_free);
    memrt__own_add(&counts->dirty_free, (size_t)0 - units);
}

void memrt__page_counts_update_stuck(const memrt__segment_t *segment, size_t before)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PAGE_HEAP);
    memrt__own_add(&counts->stuck, memrt__segment_stuck_units(segment) - before);
}

void memrt__page_counts_restart_mark(void)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PAGE_HEAP);
    if (counts->dirty_free == counts->stuck) { /* a purge could give nothing back */
        counts->most_in_spans = counts->in_spans;
    }
}

bool memrt__page_counts_are_above_budget(void)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PAGE_HEAP);
    size_t room =
        counts->most_in_spans - counts->in_spans + memrt__retention_budget() / MEMRT__UNIT;
    return counts->dirty_free > room && counts->dirty_free > counts->stuck;
}
