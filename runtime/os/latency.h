#ifndef MEMRT_OS_LATENCY_H
#define MEMRT_OS_LATENCY_H

#include <memrt/observe/latency.h>

#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/base/compiler.h"
#include "runtime/os/os.h"

/// Time of slow paths and system calls, in histograms. A path costs a load while the measurement is
/// off, and two readings of the clock while it is on.

/// Option MEMRT_LATENCY. Relaxed; not 0: measure.
extern size_t memrt__latency_is_on;

/// A run of a path.
typedef struct memrt__timer {
    memrt_latency_path_t path;
    uint64_t start; ///< memrt__os_now_ns(); 0: not measured
} memrt__timer_t;

static inline memrt__timer_t memrt__timer_start(memrt_latency_path_t path)
{
    bool on = MEMRT__UNLIKELY(memrt__load_relaxed(&memrt__latency_is_on) != 0);
    return (memrt__timer_t){path, on ? memrt__os_now_ns() : 0};
}

/// Count the run of a timer that was started.
MEMRT__COLD void memrt__timer_count(const memrt__timer_t *timer);

static inline void memrt__timer_end(const memrt__timer_t *timer)
{
    if (MEMRT__UNLIKELY(timer->start != 0)) {
        memrt__timer_count(timer);
    }
}

/// Measure the rest of the block, which runs a path.
#define MEMRT__TIMED(path)                                                                         \
    __attribute__((cleanup(memrt__timer_end), unused)) const memrt__timer_t timer =                \
        memrt__timer_start(path)

/// Implement memrt_api_t.latency.
memrt_status_t memrt__latency_read(memrt_latency_path_t path,
                                   memrt_latency_t *out) MEMRT_MUST_CHECK;

#endif
