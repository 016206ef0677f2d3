#ifndef MEMRT_LATENCY_H
#define MEMRT_LATENCY_H

/// Time of slow paths and system calls.

#include <stddef.h>
#include <stdint.h>

#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Measured work. A path that calls another measured path includes the time of the other path.
typedef enum memrt_latency_path {
    MEMRT_LATENCY_MAP = 1,      ///< mmap, with munmap of the pages around an aligned mapping
    MEMRT_LATENCY_UNMAP = 2,    ///< munmap
    MEMRT_LATENCY_REMAP = 3,    ///< mremap
    MEMRT_LATENCY_DISCARD = 4,  ///< madvise(MADV_DONTNEED)
    MEMRT_LATENCY_ADVISE = 5,   ///< madvise about huge pages, and for prefetching adaptors
    MEMRT_LATENCY_GROW = 6,     ///< growth of the page heap by a segment
    MEMRT_LATENCY_REFILL = 7,   ///< refill of an empty bin of a thread cache
    MEMRT_LATENCY_OVERFLOW = 8, ///< room for a block in a full bin of a thread cache
    MEMRT_LATENCY_DRAIN = 9,    ///< return of all blocks of a thread cache
    MEMRT_LATENCY_RECALL = 10,  ///< recall of unused bytes under a limit from other threads
    MEMRT_LATENCY_RECLAIM = 11  ///< one reclaim callback
} memrt_latency_path_t;

/// Number of paths, and number of bins in a histogram. Bin n counts times of less than 2^n
/// nanoseconds, and of at least 2^(n - 1) if n is above 0. The last bin also counts longer times.
#define MEMRT_LATENCY_PATHS 11u
#define MEMRT_LATENCY_BINS 41u

/// Times of one path, while the option MEMRT_LATENCY was 1.
typedef struct memrt_latency {
    size_t struct_size;                ///< sizeof(memrt_latency_t)
    uint64_t count;                    ///< measured runs; the sum of all bins
    uint64_t nanoseconds;              ///< sum of all times
    uint64_t bins[MEMRT_LATENCY_BINS]; ///< runs by time
} memrt_latency_t;

/// Read the times of a path.
///
/// Threads: runs that end during the call may be missing from `nanoseconds` and not from `bins`.
/// Failure: MEMRT_EINVAL: `path` is no memrt_latency_path_t, or struct_size is not set.
typedef memrt_status_t (*memrt_latency_fn)(memrt_latency_path_t path, memrt_latency_t *out);

#ifdef __cplusplus
}
#endif

#endif
