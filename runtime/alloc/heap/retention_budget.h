#ifndef MEMRT_ALLOC_HEAP_RETENTION_BUDGET_H
#define MEMRT_ALLOC_HEAP_RETENTION_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/check.h"

/// Retention budget: how far cached memory may raise RSS above the high-water mark of use. The
/// budget is 5 % of RSS, and at least MEMRT__RETENTION_MIN bytes. With a budget, blocks of several
/// sizes in turn each find cached pages. Without a budget, each block would evict the pages for the
/// next.

#define MEMRT__RETENTION_MIN ((size_t)256 << 10)
#define MEMRT__RETENTION_SHARE 20u

/// Lifetime of an RSS reading, in nanoseconds.
#define MEMRT__RETENTION_NS ((uint64_t)50000000)

/// Read RSS again if the last reading is out of date at `now`, a time of memrt__os_now_ns(). Costs
/// a few microseconds, so only callers about to call the system should use it.
void memrt__retention_budget_update(uint64_t now);

/// Return the retention budget in bytes, from the last RSS reading.
size_t memrt__retention_budget(void);

#if MEMRT_DEBUG
/// Return whether the budget is at least MEMRT__RETENTION_MIN.
bool memrt__retention_budget_is_valid(void);
#endif

#endif
