#ifndef MEMRT_DEBUG_TRACKING_H
#define MEMRT_DEBUG_TRACKING_H

#include <memrt/status.h>
#include <memrt/tracking.h>

#include "runtime/base/watch.h"
#include "runtime/stats/thread.h"

/// Which births are listed, and what is kept of each.
///
/// Sampling: the points at which a birth is listed lie on the line of all bytes that a thread asks
/// for, at distances that are exponentially distributed with the mean `sample`. So a birth of
/// `size` bytes is listed with probability p = 1 - exp(-size / sample), whatever came before, and
/// it stands for 1 / p births: the sums over what is listed are unbiased estimates of those over
/// all.

/// Begin as the options say. Once, before anything else.
void memrt__tracking_start(void);

/// Both: as memrt_api_t.tracking_set and _get.
memrt_status_t memrt__tracking_set(const memrt_tracking_t *tracking) MEMRT_MUST_CHECK;
memrt_status_t memrt__tracking_get(memrt_tracking_t *out) MEMRT_MUST_CHECK;

/// Turn tracking on, as it was set last, or off; returns whether it was on. Under checking every
/// birth is listed all the same.
bool memrt__tracking_switch(bool on);

/// Whether births are listed, all or a sample.
static inline bool memrt__tracking_is_on(void)
{
    return memrt__is_watched(MEMRT__WATCH_TRACKING | MEMRT__WATCH_SAMPLING);
}

/// Mean distance of the points in bytes, 0: no sample. Relaxed.
extern size_t memrt__tracking_mean;

/// The calling thread's next point may lie within `size` bytes: see below.
MEMRT__COLD double memrt__tracking_pick(size_t size);

/// How many births a birth of `size` bytes stands for in the sample; 0: it is not of it, or there
/// is no sample.
static inline double memrt__tracking_sampled(size_t size)
{
    memrt__thread_t *self = memrt__self;
    if (MEMRT__LIKELY(!memrt__is_watched(MEMRT__WATCH_SAMPLING))) {
        return 0;
    }
    if (MEMRT__LIKELY(self != NULL && self->until_sampled > size &&
                      self->sample == memrt__load_relaxed(&memrt__tracking_mean))) {
        self->until_sampled -= size;
        return 0;
    }
    return memrt__tracking_pick(size);
}

/// How many calls of either kind a trace wants to know of each birth, whatever tracking wants.
void memrt__tracking_trace(size_t frames, size_t native);

/// Number of the site where the calling thread is, as far as it is recorded; 0: not known.
uint32_t memrt__tracking_site(void);

/// The same, if only the trace asks.
static inline uint32_t memrt__tracking_traced_site(void)
{
    return memrt__is_watched(MEMRT__WATCH_TRACING) ? memrt__tracking_site() : 0;
}

/// What the live set is to know of a birth.
typedef struct memrt__birth {
    double share;  ///< how many births it stands for; 0: it is not to be listed
    uint32_t site; ///< 0: not known; for the trace, too
} memrt__birth_t;

/// That of a birth of `size` bytes that is to be made now. Once for each, before there is anything
/// to lose: it may run code of others, which says where this is. And in the function that others
/// call, or near it: to pass by calls of memrt's own takes time.
static inline memrt__birth_t memrt__tracking_birth(size_t size)
{
    if (MEMRT__LIKELY(!memrt__is_watched(MEMRT__WATCH_TRACKING | MEMRT__WATCH_SAMPLING |
                                         MEMRT__WATCH_TRACING))) {
        return (memrt__birth_t){0, 0};
    }
    double share = memrt__is_watched(MEMRT__WATCH_TRACKING) ? 1 : memrt__tracking_sampled(size);
    bool is_told = share != 0 || memrt__is_watched(MEMRT__WATCH_TRACING);
    return (memrt__birth_t){share, MEMRT__LIKELY(!is_told) ? 0 : memrt__tracking_site()};
}

/// That of what is a part of another birth: it is in no sample, and born nowhere by itself.
static inline memrt__birth_t memrt__tracking_part(void)
{
    return (memrt__birth_t){memrt__is_watched(MEMRT__WATCH_TRACKING) ? 1 : 0, 0};
}

#endif
