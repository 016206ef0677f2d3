#ifndef MEMRT_FAULT_INJECTION_H
#define MEMRT_FAULT_INJECTION_H

/// Fault injection: requests for memory that fail on purpose.

#include <stddef.h>
#include <stdint.h>

#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Plan of fault injection: the requests that fail on purpose.
typedef struct memrt_failure_plan {
    size_t struct_size;   ///< sizeof(memrt_failure_plan_t)
    uint64_t nth;         ///< first request to fail, counted from 1 after the plan is set; 0: none
    uint64_t every;       ///< 0: only the nth fails; k: every k-th from the nth on, 1 for all
    int this_thread_only; ///< non-zero: only requests of the thread that set the plan count
} memrt_failure_plan_t;

/// Start fault injection as `plan` describes, or stop fault injection with NULL.
/// Failure: MEMRT_EINVAL: struct_size is not set.
typedef memrt_status_t (*memrt_fail_allocations_fn)(const memrt_failure_plan_t *plan);

/// Return the requests counted since the plan was set: the number of failure points of a call.
typedef uint64_t (*memrt_failure_points_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
