#ifndef MEMRT_CONFIG_FAULT_INJECTION_H
#define MEMRT_CONFIG_FAULT_INJECTION_H

#include <stdbool.h>

#include <memrt/process/fault_injection.h>

#include "runtime/base/compiler.h"
#include "runtime/base/slow_path.h"

/// Fault injection: let allocations fail on purpose. A request for memory in memrt calls
/// memrt__fault_is_due() first. Exceptions: interned frames, sites and trace texts, and the leak
/// report.

/// Return whether `policy`, of a request, is the policy of the plan, in the scope of the plan.
typedef bool (*memrt__fault_match_fn)(const memrt_failure_plan_t *plan,
                                      const memrt_policy_t *policy);

/// Request that may have to fail.
typedef struct memrt__fault_request {
    unsigned kind; ///< MEMRT_FAULT_*
    size_t size;   ///< bytes of data; 0: a record
    const memrt_policy_t *policy;
    memrt__fault_match_fn match; ///< NULL: the request has no policy
} memrt__fault_request_t;

/// Set the plan, or end fault injection with NULL. Discards the previous plan and its count.
/// MEMRT_EINVAL as fail_allocations returns it; the previous plan then stays.
memrt_status_t memrt__fault_set(const memrt_failure_plan_t *plan);

/// Return the number of requests counted under the current plan.
uint64_t memrt__fault_points(void);

/// See memrt_api_t.failure_read.
memrt_status_t memrt__fault_read(memrt_failure_t *out);

/// Count a request, if the plan selects the request, and return whether the request must fail.
/// Returns false without counting while a slow fork holds the lock.
MEMRT__COLD bool memrt__fault_count(const memrt__fault_request_t *request);

/// The same for a request of memory for memrt itself.
MEMRT__COLD bool memrt__fault_count_record(void);

/// The same for device memory of `size` bytes.
MEMRT__COLD bool memrt__fault_count_device(size_t size);

/// Return whether the current request, of memory for memrt itself, must fail. Costs one load while
/// no plan is set.
static inline bool memrt__fault_is_due(void)
{
    return MEMRT__UNLIKELY(memrt__is_slow(MEMRT__SLOW_FAILURE)) && memrt__fault_count_record();
}

/// The same for device memory of `size` bytes.
static inline bool memrt__fault_is_due_on_device(size_t size)
{
    return MEMRT__UNLIKELY(memrt__is_slow(MEMRT__SLOW_FAILURE)) && memrt__fault_count_device(size);
}

#endif
