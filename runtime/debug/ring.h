#ifndef MEMRT_DEBUG_RING_H
#define MEMRT_DEBUG_RING_H

#include <stdbool.h>

#include <memrt/trace.h>

/// The last events of a trace, in memory from the system. One thread at a time may use it.

typedef struct memrt__ring {
    memrt_trace_event_t *events; ///< `capacity` of them; event n is at n % capacity
    uint32_t *threads;           ///< of each
    size_t capacity;             ///< 0: there is no ring
    size_t bytes;                ///< of the mapping that both are in
    uint64_t total;              ///< events ever put in
} memrt__ring_t;

/// Room for `capacity` events, 1 to MEMRT_TRACE_LAST_MAX. False: no memory.
bool memrt__ring_make(memrt__ring_t *ring, size_t capacity);
void memrt__ring_drop(memrt__ring_t *ring);

/// Put in events of one thread, over the oldest where there is no room.
void memrt__ring_put(memrt__ring_t *ring, uint32_t thread, const memrt_trace_event_t *events,
                     size_t count);

/// How many were put in and are there no more.
uint64_t memrt__ring_overwritten(const memrt__ring_t *ring);

/// Events that lie in a row and are of one thread.
typedef struct memrt__ring_run {
    const memrt_trace_event_t *events;
    size_t count;
    uint32_t thread;
} memrt__ring_run_t;

/// The run of at most `most` events that begins with event `*at`, counted from the first that was
/// put in; `*at` is then its end. False: there is none. Begin with memrt__ring_overwritten().
bool memrt__ring_next(const memrt__ring_t *ring, uint64_t *at, size_t most, memrt__ring_run_t *out);

#endif
