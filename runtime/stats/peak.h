#ifndef MEMRT_STATS_PEAK_H
#define MEMRT_STATS_PEAK_H

#include <stdint.h>

#include "runtime/stats/level.h"

/// Reading of the peak of an aggregate.

typedef struct memrt__peak {
    uint64_t bytes;
    uint64_t error; ///< bound of the error of `bytes`; 0: exact
} memrt__peak_t;

/// Read the peak of an aggregate, with rises that gauges have not reported yet. Under the lock of
/// rank THREADS.
///
/// The caller reads the peak before the sums. While other threads work, the sums only grow, so the
/// peak never exceeds the total of allocated bytes. After MEMRT__PEAK_LOOKS attempts that reports
/// of other threads disturbed, the result lacks the rises that are not reported yet, and is not
/// exact.
void memrt__peak_read(const memrt__level_t *level, memrt__peak_t *out);
#define MEMRT__PEAK_LOOKS 8

#endif
