#ifndef MEMRT_STATS_H
#define MEMRT_STATS_H

/// Statistics of the process, of policies and of threads.

#include <stddef.h>
#include <stdint.h>

#include <memrt/policy.h>
#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Statistics of one account: the whole process, one policy or one scope. Always on.
///
/// The numbers are exact when no other thread is inside memrt. Each number is a sum over threads,
/// which are read one after the other. So a number may be off by the work of other threads during
/// the read. Live figures are never below zero. Sizes are requested sizes, without header and
/// padding, unless the comment of the member states otherwise.
///
/// `alloc`, `free`, `mi_alloc` and `mi_free` are Numba's counters with Numba's meaning, except that
/// a failed request counts only in `failed`.
typedef struct memrt_stats {
    size_t struct_size;  ///< set by the caller to sizeof(memrt_stats_t)
    uint64_t alloc;      ///< blocks ever made (1 per inline MemInfo, 2 per resizable MemInfo)
    uint64_t free;       ///< blocks ever freed
    uint64_t mi_alloc;   ///< MemInfos ever made
    uint64_t mi_free;    ///< MemInfos ever destroyed
    uint64_t realloc;    ///< blocks ever resized
    uint64_t failed;     ///< requests for a block, header or resize that were refused
    uint64_t live;       ///< bytes in use now
    uint64_t peak;       ///< maximum bytes in use at once since the start or the last reset
    uint64_t peak_error; ///< bytes by which `peak` may be off either way; 0: exact
    uint64_t total;      ///< bytes ever allocated; growth by realloc counts, shrinking does not
    uint64_t adopted;    ///< bytes of live adopted buffers; not part of `live`
    uint64_t cached;     ///< bytes kept for reuse
    uint64_t reserved;   ///< bytes taken from allocators for live blocks, with headers and padding,
                         ///< plus `cached`
    /* Memory that a forked process inherited from its parent: */
    uint64_t inherited;        ///< bytes of `live` that were allocated before the fork
    uint64_t inherited_blocks; ///< blocks that were allocated before the fork and are not freed
    uint64_t inherited_error;  ///< bytes of `live`, beyond `inherited`, that may also date from
                               ///< before the fork: the fork had no memory for a separate account
    /* References outside of memrt: */
    uint64_t exported; ///< references that other libraries hold now (MEMRT_HOLDER_EXPORT)
} memrt_stats_t;

/// Number of bins in a histogram of sizes. The first bin counts empty blocks. The next bins count 1
/// byte, 2 to 3 bytes, 4 to 7 bytes, and so on. The last bin counts all larger sizes.
#define MEMRT_SIZE_BINS 48u

/// Blocks with data by size: histograms of MEMRT_SIZE_BINS bins. A resized block counts with its
/// new size. Adopted memory is not counted.
typedef struct memrt_sizes {
    size_t struct_size;                  ///< sizeof(memrt_sizes_t)
    uint64_t allocated[MEMRT_SIZE_BINS]; ///< blocks allocated so far
    uint64_t live[MEMRT_SIZE_BINS];      ///< blocks that are not freed
} memrt_sizes_t;

/// Read the account of `policy` (NULL: the process).
/// Failure: MEMRT_EINVAL: struct_size is not set.
typedef memrt_status_t (*memrt_stats_read_fn)(const memrt_policy_t *policy, memrt_stats_t *out);

/// Read the blocks by size of `policy` (NULL: the process).
/// Failure: MEMRT_EINVAL: struct_size is not set.
typedef memrt_status_t (*memrt_stats_sizes_fn)(const memrt_policy_t *policy, memrt_sizes_t *out);

/// Restart the peak of `policy` (NULL: the process) at the bytes that are live now.
typedef void (*memrt_stats_reset_peak_fn)(memrt_policy_t *policy);

/// Work of one thread, since the first call that needed memory of memrt. `id` and `started`
/// together identify a thread, because the system gives the id of an ended thread to a new thread.
typedef struct memrt_thread_stats {
    size_t struct_size; ///< sizeof(memrt_thread_stats_t)
    uint64_t id;        ///< the system's id of the thread: gettid() on Linux
    uint64_t started;   ///< time of the first call, in nanoseconds since 1970
    uint64_t alloc;     ///< blocks that the thread made
    uint64_t free;      ///< blocks that the thread freed, whichever thread made them
    uint64_t allocated; ///< bytes that the thread allocated, as memrt_stats_t.total
    uint64_t freed;     ///< bytes that the thread freed; may fall by a block that is being freed
} memrt_thread_stats_t;

/// Read the statistics of all threads that use memrt, except threads that have ended and threads
/// that found no memory for a record. `*count` is the number of elements of `out` on entry, and the
/// number of threads on return. Without room for all threads, the call fills the elements that
/// exist. The caller sets struct_size in each element.
///
/// Threads: while a thread works, its figures may lack the latest changes, and frees are never
/// ahead
///          of the allocations of the same blocks.
/// Failure: MEMRT_EINVAL: `count` is NULL, `out` is NULL but `*count` is not 0, or struct_size is
///          not set. Then `*count` is unchanged.
typedef memrt_status_t (*memrt_threads_fn)(memrt_thread_stats_t *out, size_t *count);

#ifdef __cplusplus
}
#endif

#endif
