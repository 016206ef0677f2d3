#ifndef MEMRT_BASE_FAILURE_H
#define MEMRT_BASE_FAILURE_H

#include <stdbool.h>

#include <memrt/stats.h>

#include "runtime/base/compiler.h"
#include "runtime/base/watch.h"

/// Allocation failure on purpose. Every place in memrt that asks for memory asks here first.

/// Set the plan, or end it with NULL. The plan that was there before is forgotten.
void memrt__failure_set(const memrt_failure_plan_t *plan);

/// Requests counted under the plan so far.
uint64_t memrt__failure_points(void);

bool memrt__failure_count_one(void);

/// Whether this request shall fail.
static inline bool memrt__failure_due(void)
{
    return MEMRT__UNLIKELY(memrt__is_watched(MEMRT__WATCH_FAILURE)) && memrt__failure_count_one();
}

#endif
