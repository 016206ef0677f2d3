#ifndef MEMRT_LIMIT_H
#define MEMRT_LIMIT_H

/// Limits of live bytes, for the process, a policy, or a scope.

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

/// Read the limit and the live bytes: of `policy`, of `scope`, or of the process if both are NULL.
/// Failure: MEMRT_EINVAL if both are given, or struct_size is not set.
typedef memrt_status_t (*memrt_limit_read_fn)(const memrt_policy_t *policy,
                                              const memrt_scope_t *scope, memrt_limit_t *out);

#ifdef __cplusplus
}
#endif

#endif
