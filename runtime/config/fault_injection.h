#ifndef MEMRT_CONFIG_FAULT_INJECTION_H
#define MEMRT_CONFIG_FAULT_INJECTION_H

#include <stdbool.h>

#include <memrt/process/fault_injection.h>

#include "runtime/base/compiler.h"
#include "runtime/base/slow_path.h"

/// Fault injection: let allocations fail on purpose. A request for memory in memrt calls
/// memrt__fault_is_due() first. Exceptions: interned frames, sites and trace texts, and the leak
/// report.

/// Set the plan, or end fault injection with NULL. Discards the previous plan and its count.
void memrt__fault_set(const memrt_failure_plan_t *plan);

/// Return the number of requests counted under the current plan.
uint64_t memrt__fault_points(void);

/// Count one request, if the plan counts the calling thread, and return whether the request must
/// fail. Returns false without counting while a slow fork holds the lock.
bool memrt__fault_count_one(void);

/// Return whether the current request must fail. Costs one load while no plan is set.
static inline bool memrt__fault_is_due(void)
{
    return MEMRT__UNLIKELY(memrt__is_slow(MEMRT__SLOW_FAILURE)) && memrt__fault_count_one();
}

#endif
