#include "runtime/os/latency.h"

#include <string.h>

#include "runtime/base/size.h"

size_t memrt__latency_is_on;

/// Times of one path. Any thread, relaxed add.
typedef struct histogram {
    _Alignas(MEMRT__CACHE_LINE) size_t nanoseconds;
    size_t bins[MEMRT_LATENCY_BINS];
} histogram_t;

static histogram_t histograms[MEMRT_LATENCY_PATHS];

static histogram_t *get_histogram(memrt_latency_path_t path)
{
    size_t index = (size_t)path - 1;
    return index < MEMRT_LATENCY_PATHS ? &histograms[index] : NULL;
}

static size_t choose_bin(size_t nanoseconds)
{
    size_t bits = nanoseconds == 0 ? 0 : memrt__floor_log2(nanoseconds) + 1;
    return memrt__size_min(bits, MEMRT_LATENCY_BINS - 1);
}

void memrt__timer_count(const memrt__timer_t *timer)
{
    histogram_t *histogram = get_histogram(timer->path);
    size_t time = (size_t)(memrt__os_now_ns() - timer->start);
    MEMRT__ASSERT(histogram != NULL);
    memrt__fetch_add_relaxed(&histogram->nanoseconds, time);
    memrt__fetch_add_relaxed(&histogram->bins[choose_bin(time)], 1);
}

memrt_status_t memrt__latency_read(memrt_latency_path_t path, memrt_latency_t *out)
{
    const histogram_t *histogram = get_histogram(path);
    if (histogram == NULL || out->struct_size < sizeof(out->struct_size)) {
        return MEMRT_EINVAL;
    }
    memrt_latency_t all = {.struct_size = out->struct_size};
    for (size_t bin = 0; bin < MEMRT_LATENCY_BINS; bin++) {
        all.bins[bin] = memrt__load_relaxed(&histogram->bins[bin]);
        all.count += all.bins[bin];
    }
    all.nanoseconds = memrt__load_relaxed(&histogram->nanoseconds);
    memcpy(out, &all, memrt__size_min(out->struct_size, sizeof(all)));
    return MEMRT_OK;
}
