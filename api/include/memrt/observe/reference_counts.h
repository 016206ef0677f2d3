#ifndef MEMRT_REFERENCE_COUNTS_H
#define MEMRT_REFERENCE_COUNTS_H

/// Counts of reference operations through the function table.

#include <stddef.h>
#include <stdint.h>

#include <memrt/policy.h>
#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Reference operations through the function table, since the start of the process: calls of
/// release and release_as, and calls of acquire, try_acquire, acquire_as, block_meminfo and find
/// that gave the caller a reference.
///
/// Only a process with MEMRT_REFERENCES=1 counts. Its memrt_get_api() returns a table that counts
/// to every caller; the table cannot change later. Operations that do not call the table are not
/// counted: increments of compiled code, memrt_meminfo_acquire() and memrt_meminfo_release() except
/// the last release, the reference of a new MemInfo, and references that memrt itself takes.
typedef struct memrt_reference_counts {
    size_t struct_size; ///< sizeof(memrt_reference_counts_t)
    uint64_t counting;  ///< 1: the process counts; 0: both counts are 0
    uint64_t acquired;  ///< references acquired
    uint64_t released;  ///< references released
} memrt_reference_counts_t;

/// Read the counts of the MemInfos of `policy`, in all scopes. NULL: of the process.
///
/// Threads: operations that other threads make during the call may be missing.
/// Failure: MEMRT_EINVAL: struct_size is not set.
typedef memrt_status_t (*memrt_reference_counts_fn)(const memrt_policy_t *policy,
                                                    memrt_reference_counts_t *out);

#ifdef __cplusplus
}
#endif

#endif
