#include "runtime/observe/tracking.h"

#include <math.h>

#include "runtime/base/size.h"
#include "runtime/config/options.h"
#include "runtime/observe/live_set.h"
#include "runtime/observe/sites.h"
#include "runtime/os/os.h"

/// Settings of tracking, then the maxima of frames for the event trace. Relaxed: a thread that
/// allocates during a change may see a mix of old and new settings.
size_t memrt__tracking_mean;
static size_t most_frames, most_native;
static size_t most_traced_frames, most_traced_native;

bool memrt__tracking_switch(bool on)
{
    bool was = memrt__tracking_is_on();
    bool sampling = memrt__load_relaxed(&memrt__tracking_mean) != 0;
    memrt__slow_path_set(MEMRT__SLOW_SAMPLING, on && sampling);
    memrt__slow_path_set(MEMRT__SLOW_TRACKING, (on && !sampling) || memrt__options.check);
    return was;
}

void memrt__tracking_start(void)
{
    memrt__store_relaxed(&most_frames, memrt__options.track_frames);
    memrt__store_relaxed(&most_native, memrt__options.track_native);
    memrt__store_relaxed(&memrt__tracking_mean, memrt__options.track_sample);
    memrt__tracking_switch(memrt__options.track || memrt__options.leaks != MEMRT__LEAKS_OFF);
}

memrt_status_t memrt__tracking_set(const memrt_tracking_t *tracking)
{
    if (tracking->struct_size < sizeof(*tracking) || tracking->frames > MEMRT_FRAMES_MAX ||
        tracking->native > MEMRT_FRAMES_MAX) {
        return MEMRT_EINVAL;
    }
    memrt__store_relaxed(&most_frames, tracking->frames);
    memrt__store_relaxed(&most_native, tracking->native);
    memrt__store_relaxed(&memrt__tracking_mean, tracking->sample);
    memrt__tracking_switch(tracking->on != 0);
    return MEMRT_OK;
}

memrt_status_t memrt__tracking_get(memrt_tracking_t *out)
{
    if (out->struct_size < sizeof(*out)) {
        return MEMRT_EINVAL;
    }
    out->on = memrt__tracking_is_on();
    out->frames = (uint32_t)memrt__load_relaxed(&most_frames);
    out->native = (uint32_t)memrt__load_relaxed(&most_native);
    out->sample = memrt__load_relaxed(&memrt__tracking_mean);
    out->allocations = memrt__live_allocs();
    return MEMRT_OK;
}

/// Return the next random number of a thread (SplitMix64).
static uint64_t draw_random(memrt__thread_t *self)
{
    uint64_t mixed = self->sampling.random += MEMRT__HASH_FACTOR;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    return mixed ^ (mixed >> 31);
}

/// Return a random number of a thread above 0 and of at most 1.
static double draw_uniform(memrt__thread_t *self)
{
    if (self->sampling.random == 0) {
        self->sampling.random = memrt__os_now_ns() ^ (uint64_t)(uintptr_t)self;
    }
    return ((double)(draw_random(self) >> 11) + 1) * 0x1p-53;
}

double memrt__draw_uniform(void)
{
    memrt__thread_t *self = memrt__thread_self();
    return self == NULL ? 1 : draw_uniform(self);
}

/// Draw the distance to the next sample point: at least 1 byte, so that a next point exists.
static size_t draw_distance(memrt__thread_t *self, size_t period)
{
    double distance = -log(draw_uniform(self)) * (double)period;
    return distance < 0x1p62 ? (size_t)distance + 1 : (size_t)1 << 62;
}

/// Draw the first sample point of a thread for a mean distance. Returns false if the thread already
/// samples with that mean.
static bool begin_sample(memrt__thread_t *self, size_t period)
{
    MEMRT__ASSERT(self == memrt__self && period != 0);
    if (self->sampling.sample == period) {
        return false;
    }
    self->sampling.sample = period;
    self->sampling.until_sampled = draw_distance(self, period);
    return true;
}

double memrt__tracking_pick(size_t size)
{
    memrt__thread_t *self = memrt__thread_self();
    size_t period = memrt__load_relaxed(&memrt__tracking_mean);
    if (period == 0 || self == NULL) {
        return 0;
    }
    if (begin_sample(self, period) && self->sampling.until_sampled > size) {
        self->sampling.until_sampled -= size;
        return 0;
    }
    self->sampling.until_sampled = draw_distance(self, period);
    MEMRT__ASSERT(self->sampling.until_sampled != 0);
    /* the inverse of the probability that a sample point lies within `size` bytes */
    return -1 / expm1(-(double)size / (double)period);
}

void memrt__tracking_trace(size_t frames, size_t native)
{
    memrt__store_relaxed(&most_traced_frames, frames);
    memrt__store_relaxed(&most_traced_native, native);
}

uint32_t memrt__tracking_site(void)
{
    size_t frames = 0, native = 0;
    if (memrt__tracking_is_on()) {
        frames = memrt__load_relaxed(&most_frames);
        native = memrt__load_relaxed(&most_native);
    }
    if (memrt__is_slow(MEMRT__SLOW_TRACING)) {
        frames = memrt__size_max(frames, memrt__load_relaxed(&most_traced_frames));
        native = memrt__size_max(native, memrt__load_relaxed(&most_traced_native));
    }
    MEMRT__ASSERT(frames <= MEMRT_FRAMES_MAX && native <= MEMRT_FRAMES_MAX);
    return frames + native == 0 ? 0 : memrt__site_here(frames, native);
}
