#ifndef MEMRT_TRACE_EVENT_RING_H
#define MEMRT_TRACE_EVENT_RING_H

#include <stdbool.h>
#include <stddef.h>

#include <memrt/observe/trace_file.h>

#include "runtime/base/check.h"

/// Event ring: keeps the last events of a trace in memory that is mapped from the system. Threads:
/// one thread at a time.
///
/// Events are numbered from 0 in the order of addition. Invariant: the ring has the last `capacity`
/// events, or all events if fewer were added.

typedef struct memrt__event_ring {
    memrt_trace_event_t *events; ///< array of `capacity` events; event n is at n % capacity
    uint32_t *threads;           ///< thread of each event
    size_t capacity;             ///< 0: there is no ring
    size_t bytes;                ///< size of the mapping of both arrays
    uint64_t total;              ///< number of events ever added
} memrt__event_ring_t;

/// Allocate a ring for `capacity` events, 1 to MEMRT_TRACE_LAST_MAX. Returns false when out of
/// memory.
bool memrt__event_ring_allocate(memrt__event_ring_t *ring, size_t capacity);

/// Unmap the memory of a ring. No effect without a ring.
void memrt__event_ring_free(memrt__event_ring_t *ring);

/// Add events of one thread. When the ring is full, new events overwrite the oldest events.
void memrt__event_ring_put(memrt__event_ring_t *ring, uint32_t thread,
                           const memrt_trace_event_t *events, size_t count);

/// Return the number of overwritten events.
uint64_t memrt__event_ring_overwritten(const memrt__event_ring_t *ring);

/// Run of events: consecutive in memory, and all of one thread.
typedef struct memrt__event_ring_run {
    const memrt_trace_event_t *events;
    size_t count;
    uint32_t thread;
} memrt__event_ring_run_t;

/// Return the run of at most `most` events that begins with event number `*at`, and move `*at` to
/// the end of the run. The first number is memrt__event_ring_overwritten(). Returns false if no
/// event has the number `*at`.
bool memrt__event_ring_next(const memrt__event_ring_t *ring, uint64_t *at, size_t most,
                            memrt__event_ring_run_t *out);

#if MEMRT_DEBUG
/// Return whether the invariants of a ring hold.
bool memrt__event_ring_is_valid(const memrt__event_ring_t *ring);
#endif

#endif
