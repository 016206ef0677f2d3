#ifndef MEMRT_BASE_FAILURE_H
#define MEMRT_BASE_FAILURE_H

#include <stdbool.h>

#include <memrt/stats.h>

#include "runtime/base/atomics.h"
#include "runtime/base/compiler.h"

/// Allocation failure on purpose. Every place in memrt that asks for memory asks here first.

/// Set the plan, or end it with NULL. The plan that was there before is forgotten.
void memrt__failure_set(const memrt_failure_plan_t *plan);

/// Requests counted under the plan so far.
uint64_t memrt__failure_points(void);

/// Written by memrt__failure_set alone, relaxed: publishes nothing, a thread may see it late.
extern size_t memrt__failure_armed;
bool memrt__failure_count_one(void);

/// Whether this request shall fail.
static inline bool memrt__failure_due(void)
{
    return MEMRT__UNLIKELY(memrt__load_relaxed(&memrt__failure_armed) != 0) &&
           memrt__failure_count_one();
}

#endif
