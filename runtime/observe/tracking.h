#ifndef MEMRT_OBSERVE_TRACKING_H
#define MEMRT_OBSERVE_TRACKING_H

#include <memrt/observe/tracking.h>
#include <memrt/status.h>

#include "runtime/base/slow_path.h"
#include "runtime/thread/thread.h"

/// Tracking of allocations: which allocations the live set lists, and with which call stack.
///
/// Sampling: the bytes that a thread allocates form a line, with sample points at exponentially
/// distributed distances with mean `sample`. An allocation that covers a point is listed. So an
/// allocation of `size` bytes is listed with probability p = 1 - exp(-size / sample), independent
/// of earlier allocations. A listed allocation stands for 1 / p allocations, so sums over the list
/// are unbiased estimates of sums over all allocations.

/// Start tracking as the options set it. Called once, before any other function of this file.
void memrt__tracking_start(void);

/// Implement memrt_api_t.tracking_set and memrt_api_t.tracking_get.
memrt_status_t memrt__tracking_set(const memrt_tracking_t *tracking) MEMRT_MUST_CHECK;
memrt_status_t memrt__tracking_get(memrt_tracking_t *out) MEMRT_MUST_CHECK;

/// Turn tracking on, with the last settings, or off. Returns whether tracking was on. The option
/// `check` lists every allocation in any case.
bool memrt__tracking_switch(bool on);

/// Return whether allocations are listed, all or a sample.
static inline bool memrt__tracking_is_on(void)
{
    return memrt__is_slow(MEMRT__SLOW_TRACKING | MEMRT__SLOW_SAMPLING);
}

/// Mean distance of the sample points in bytes, 0: no sampling. Relaxed.
extern size_t memrt__tracking_mean;

/// Return a random number above 0 and of at most 1; 1 for a thread without a record.
double memrt__draw_uniform(void);

/// Slow path of memrt__tracking_sampled(): the next sample point of the calling thread may lie
/// within `size` bytes, or must be drawn. Returns the sampling weight, or 0.
MEMRT__COLD double memrt__tracking_pick(size_t size);

/// Return the sampling weight of an allocation of `size` bytes: the number of allocations that a
/// listed allocation stands for. 0: the allocation is not listed, or sampling is off.
static inline double memrt__tracking_sampled(size_t size)
{
    memrt__thread_t *self = memrt__thread_or_null();
    if (MEMRT__LIKELY(!memrt__is_slow(MEMRT__SLOW_SAMPLING))) {
        return 0;
    }
    if (MEMRT__LIKELY(self != NULL && self->sampling.until_sampled > size &&
                      self->sampling.sample == memrt__load_relaxed(&memrt__tracking_mean))) {
        self->sampling.until_sampled -= size;
        return 0;
    }
    return memrt__tracking_pick(size);
}

/// Set how many frames of each kind the event trace records of each allocation, independent of the
/// settings of tracking.
void memrt__tracking_trace(size_t frames, size_t native);

/// Return the allocation site of the calling thread, with as many frames as tracking and the event
/// trace record. 0: unknown.
uint32_t memrt__tracking_site(void);

/// Return the allocation site of the calling thread if the event trace is on, else 0.
static inline uint32_t memrt__tracking_traced_site(void)
{
    return memrt__is_slow(MEMRT__SLOW_TRACING) ? memrt__tracking_site() : 0;
}

/// Tracking data of an allocation, for the live set and the event trace.
typedef struct memrt__alloc_event {
    double weight; ///< sampling weight; 0: the allocation is not listed
    uint32_t site; ///< allocation site; 0: unknown; also for the event trace
    bool guarded;  ///< whether the block gets guard pages
} memrt__alloc_event_t;

/// Return the tracking data of an allocation of `size` bytes that the caller is about to make. Call
/// the function once for each allocation, before the block exists: a callback of an interpreter may
/// run to find the call stack. Call the function in or near the exported entry point, because each
/// frame of memrt on the stack costs time.
static inline memrt__alloc_event_t memrt__tracking_alloc(size_t size)
{
    if (MEMRT__LIKELY(
            !memrt__is_slow(MEMRT__SLOW_TRACKING | MEMRT__SLOW_SAMPLING | MEMRT__SLOW_TRACING))) {
        return (memrt__alloc_event_t){0, 0, false};
    }
    double weight = memrt__is_slow(MEMRT__SLOW_TRACKING) ? 1 : memrt__tracking_sampled(size);
    bool is_told = weight != 0 || memrt__is_slow(MEMRT__SLOW_TRACING);
    return (memrt__alloc_event_t){weight, MEMRT__LIKELY(!is_told) ? 0 : memrt__tracking_site(),
                                  false};
}

/// Return the tracking data of a block that belongs to another allocation. Such blocks are never
/// sampled and have no allocation site.
static inline memrt__alloc_event_t memrt__tracking_data_block(void)
{
    return (memrt__alloc_event_t){memrt__is_slow(MEMRT__SLOW_TRACKING) ? 1 : 0, 0, false};
}

#endif
