#ifndef MEMRT_OBSERVE_SITE_COUNTERS_H
#define MEMRT_OBSERVE_SITE_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Site counters: buffers and bytes that each thread allocated at each site. Each thread has
/// counters of its own, so threads at the same site do not contend. A reader adds up the threads.

typedef struct memrt__site_counters {
    size_t count;
    size_t bytes;
} memrt__site_counters_t;

/// Count a buffer of `size` bytes that the calling thread allocated at a site. `site` is a number
/// from 1 to MEMRT__INTERNED_MAX. Failure: returns false without memory for a counter.
bool memrt__site_counters_add(uint32_t site, size_t size);

/// Return the sum of the counters of all threads at a site. Takes the lock of rank THREADS.
memrt__site_counters_t memrt__site_counters_at(uint32_t site);

#endif
