#ifndef MEMRT_SNAPSHOT_H
#define MEMRT_SNAPSHOT_H

/// Statistics of all levels at one moment: the process, policies, scopes and threads.

#include <stddef.h>
#include <stdint.h>

#include <memrt/meminfo.h>
#include <memrt/observe/stats.h>
#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Kind of a level.
typedef enum memrt_level_kind {
    MEMRT_LEVEL_PROCESS = 1, ///< the process
    MEMRT_LEVEL_POLICY = 2,  ///< a policy, with its blocks in all scopes
    MEMRT_LEVEL_SCOPE = 3    ///< a scope, with its inner scopes
} memrt_level_kind_t;

/// Statistics of one level.
typedef struct memrt_level_stats {
    size_t struct_size;  ///< sizeof(memrt_level_stats_t)
    uint64_t kind;       ///< memrt_level_kind_t
    uint64_t id;         ///< policy_index() or scope_id(); 0: the process
    uint64_t parent;     ///< id of the enclosing scope; 0: none
    char name[64];       ///< name of the policy or scope; "": the process
    memrt_stats_t stats; ///< `cached` is 0, and `reserved` is without cached bytes
} memrt_level_stats_t;

/// Statistics at one moment. The caller sets struct_size, here and in each element.
typedef struct memrt_snapshot {
    size_t struct_size;            ///< sizeof(memrt_snapshot_t)
    memrt_level_stats_t *levels;   ///< the process, then policies, then scopes
    size_t level_count;            ///< elements of `levels`; on return the number of levels
    memrt_thread_stats_t *threads; ///< as memrt_api_t.threads
    size_t thread_count;           ///< elements of `threads`; on return the number of threads
    uint64_t readings;             ///< readings until no counter changed meanwhile
    uint64_t nanoseconds;          ///< time for which other threads may have waited
    uint64_t generation;           ///< forks from the process with the first load of memrt
} memrt_snapshot_t;

/// Read the statistics of all levels at one moment. Without room for all levels or threads, the
/// call fills the elements that exist.
///
/// Threads: an allocation or resize that another thread begins meanwhile waits for the end of the
///          call. All figures are read between two equal readings of all counters, so each counter
///          had its value at one moment. A thread in the middle of one operation may have counted
///          the bytes of one block, and not yet the block. In a forked process, peaks of the parent
///          stay bounded by `peak_error`. Counters continue across a fork: to compare two
///          snapshots, compare `generation` and the process id.
/// Failure: MEMRT_EINVAL: struct_size is not set, or an array is NULL with elements;
///          MEMRT_EBUSY: other threads changed counters for 50 ms, by frees and by operations on
///          references. Then the figures are of several moments.
typedef memrt_status_t (*memrt_snapshot_fn)(memrt_snapshot_t *snapshot);

#ifdef __cplusplus
}
#endif

#endif
