#ifndef MEMRT_LIMIT_H
#define MEMRT_LIMIT_H

/// Limits and soft limits of live bytes, for the process, a policy, or a scope.

#include <stddef.h>
#include <stdint.h>

#include <memrt/policy.h>
#include <memrt/scope.h>
#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// No limit.
#define MEMRT_NO_LIMIT UINT64_MAX

/// Limit of the process, a policy, or a scope. Set `struct_size` before a read.
typedef struct memrt_limit {
    size_t struct_size; ///< sizeof(memrt_limit_t)
    uint64_t limit;     ///< maximum of live bytes; MEMRT_NO_LIMIT: none
    uint64_t live;      ///< live bytes
    uint64_t held;      ///< bytes that threads hold for their next blocks
    uint64_t soft;      ///< soft limit; MEMRT_NO_LIMIT: none
    uint64_t rises;     ///< rises above the soft limit so far
} memrt_limit_t;

/// Limit the live bytes: of `policy`, of `scope` with its inner scopes, or of the process if both
/// are NULL. MEMRT_NO_LIMIT removes the limit.
///
/// A block counts from its allocation to its free, with the size of its data. If a block would
/// exceed a limit, the allocation fails as without memory, and explain_shortage names the limit. A
/// block must fit all limits: of the process, of its policy, of its scope and of all outer scopes.
/// While the process has a limit, cached memory is released before the sum of live and cached bytes
/// exceeds the limit.
///
/// The limit of a scope ends when no reference to the scope and to its inner scopes is left.
///
/// A limit below the live bytes refuses new blocks until enough blocks are freed. Adopted buffers
/// and memory of CUDA devices do not count; see cuda_set_limit.
///
/// Exactness: live bytes never exceed a limit that was set before the first allocation. A thread
///            that allocated before may exceed a new limit once, by at most 1 MiB. Each thread may
///            hold 1/64 of the limit, at most 960 KiB, for its next blocks. When a limit is
///            reached, threads that use memrt return these bytes. A thread that waits keeps the
///            bytes until the thread uses memrt again, or ends.
/// Ownership: borrowed; the caller holds the policy or the scope during the call.
/// Threads:   any.
/// Failure:   MEMRT_EINVAL if both `policy` and `scope` are given; MEMRT_ENOTSUP in a build without
///            counters.
typedef memrt_status_t (*memrt_limit_set_fn)(memrt_policy_t *policy, memrt_scope_t *scope,
                                             uint64_t bytes);

/// Set a soft limit of `policy`, of `scope` with its inner scopes, or of the process if both are
/// NULL. MEMRT_NO_LIMIT removes the soft limit.
///
/// A soft limit refuses no allocation. The use of a soft limit is `live` plus `held` of
/// memrt_limit_t. When the use rises above the soft limit, memrt frees memory on a thread of its
/// own, in this order:
///   1. Cached memory of all policies goes back to the system.
///   2. Reclaim callbacks run, see reclaim_add, until the use is at most 95 % of the soft limit.
///   3. If the use is still higher, callbacks of pressure_add run as for MEMRT_PRESSURE_MEDIUM,
///      also if that level was reached before.
/// The rise ends when the use is at most 95 % of the soft limit. The next rise is handled again.
/// While the process has a soft limit, cached memory is also released before live and cached bytes
/// exceed the soft limit, as for a limit.
///
/// A soft limit below the use counts as a rise at once. A limit that is set below the soft limit
/// later leaves the soft limit as it is, without effect. The soft limit of a scope ends as its
/// limit does.
///
/// Exactness: the allocation that makes the use exceed the soft limit wakes the thread before the
///            allocation returns. A rise is noted at the latest when the live bytes exceed the soft
///            limit, and at the earliest when they are `held` bytes below. A fall is noted within
///            100 ms, so at most ten rises per second are handled.
/// Fork:      soft limits continue in the child, where the thread starts again once the child
///            allocates. A use above the soft limit is a new rise there.
/// Ownership: borrowed; the caller holds the policy or the scope during the call.
/// Threads:   any.
/// Failure:   MEMRT_EINVAL if both `policy` and `scope` are given, or `bytes` exceeds the limit;
///            MEMRT_ENOTSUP in a build without counters.
typedef memrt_status_t (*memrt_limit_set_soft_fn)(memrt_policy_t *policy, memrt_scope_t *scope,
                                                  uint64_t bytes);

/// Read the limits and the live bytes: of `policy`, of `scope`, or of the process if both are NULL.
/// Failure: MEMRT_EINVAL if both are given, or struct_size is not set.
typedef memrt_status_t (*memrt_limit_read_fn)(const memrt_policy_t *policy,
                                              const memrt_scope_t *scope, memrt_limit_t *out);

#ifdef __cplusplus
}
#endif

#endif
