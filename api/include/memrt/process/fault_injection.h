#ifndef MEMRT_FAULT_INJECTION_H
#define MEMRT_FAULT_INJECTION_H

/// Fault injection: requests for memory that fail on purpose.

#include <stddef.h>
#include <stdint.h>

#include <memrt/policy.h>
#include <memrt/scope.h>
#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Kinds of requests, one bit each. Requests of the kind RECORD have the size 0 and no policy.
/// Requests of the kind DEVICE have no policy.
#define MEMRT_FAULT_BLOCK 1u   ///< block of memory, as NumPy's arrays have
#define MEMRT_FAULT_MEMINFO 2u ///< MemInfo with its data; adopted memory and a tiny block's: size 0
#define MEMRT_FAULT_RESIZE 4u  ///< growth or move of a block; the size is the new size
#define MEMRT_FAULT_DEVICE 8u  ///< memory of CUDA: of a device, managed, or pinned
#define MEMRT_FAULT_RECORD 16u ///< memory for memrt itself: policies, scopes, names, lists, threads

/// Plan of fault injection: the requests that fail on purpose. Set `struct_size`. Only requests
/// that match all of the last five members count and fail; 0 and NULL match all requests.
typedef struct memrt_failure_plan {
    size_t struct_size;   ///< sizeof(memrt_failure_plan_t)
    uint64_t nth;         ///< first request to fail, counted from 1 after the plan is set; 0: none
    uint64_t every;       ///< 0: only the nth fails; k: every k-th from the nth on, 1 for all
    int this_thread_only; ///< non-zero: only requests of the thread that set the plan count
    size_t min_size;      ///< minimum of bytes of data
    size_t max_size;      ///< maximum of bytes of data; 0: none
    const memrt_policy_t *policy; ///< the caller keeps a reference until the plan ends
    const memrt_scope_t *scope; ///< with the scopes inside; the caller keeps a reference, as above
    uint32_t kinds;             ///< MEMRT_FAULT_*, as a set of bits
} memrt_failure_plan_t;

/// Start fault injection as `plan` describes, or stop fault injection with NULL.
/// Failure: MEMRT_EINVAL: struct_size is not set, max_size is below min_size, or a kind is unknown.
typedef memrt_status_t (*memrt_fail_allocations_fn)(const memrt_failure_plan_t *plan);

/// Return the requests counted since the plan was set: the number of failure points of a call.
typedef uint64_t (*memrt_failure_points_fn)(void);

/// Failures since the plan was set. Set `struct_size`; a member beyond struct_size is not written.
typedef struct memrt_failure {
    size_t struct_size; ///< sizeof(memrt_failure_t)
    uint64_t points;    ///< requests counted, as failure_points() returns
    uint64_t failed;    ///< requests that failed on purpose
    uint64_t size;      ///< bytes of data of the first request that failed
    uint32_t kind;      ///< MEMRT_FAULT_* of this request; 0: none failed
} memrt_failure_t;

/// Read the failures since the plan was set.
/// Failure: MEMRT_EINVAL: struct_size is not set.
typedef memrt_status_t (*memrt_failure_read_fn)(memrt_failure_t *out);

#ifdef __cplusplus
}
#endif

#endif
