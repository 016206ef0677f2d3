#ifndef MEMRT_BINDINGS_CALLBACKS_EVENT_QUEUE_H
#define MEMRT_BINDINGS_CALLBACKS_EVENT_QUEUE_H

#include "support/binding.h"

#include <stdatomic.h>
#include <stdbool.h>

/// Queue of block events, from the threads that allocate to one thread that calls Python.
///
/// Threads: any number of threads put events, and one thread at a time takes events. No function
/// waits, locks or allocates, except for memrt__event_queue_create(). A full queue refuses events.

/// Number of events in a queue, a power of two.
#define MEMRT_EVENT_QUEUE_LENGTH 4096u

/// Event in the queue. The event has no references, so a queued event keeps nothing alive.
typedef struct memrt_queued_event {
    uint64_t hook; ///< number of the hook
    uint64_t type; ///< memrt_hook_type_t; 0: an event that is not delivered
    uint64_t address, size;
    uint64_t old_address, old_size; ///< of a resize
    double weight;
    uint64_t site;
    uint64_t thread;                 ///< system's id of the thread
    uint64_t time;                   ///< nanoseconds of CLOCK_MONOTONIC
    uint32_t scope;                  ///< number of the scope; 0: none
    char policy[MEMRT_NAME_MAX + 1]; ///< name of the policy
} memrt_queued_event_t;

/// Place of an event. `turn` is p while the place is free for the put at position p, and p + 1
/// while the place has the event of position p.
typedef struct memrt_queue_place {
    atomic_size_t turn;
    memrt_queued_event_t event;
} memrt_queue_place_t;

typedef struct memrt_event_queue {
    memrt_queue_place_t *places; ///< MEMRT_EVENT_QUEUE_LENGTH places, or NULL; never freed
    atomic_size_t end;           ///< position of the next put
    atomic_size_t begin;         ///< position of the next take
} memrt_event_queue_t;

/// Return the nanoseconds of CLOCK_MONOTONIC, the clock of the events.
uint64_t memrt__event_clock(void);

/// Allocate the places of an empty queue, unless the queue has places. Returns false when out of
/// memory.
bool memrt__event_queue_create(memrt_event_queue_t *queue);

/// Put an event of the hook with a number. Returns false if the queue is full.
bool memrt__event_queue_put(memrt_event_queue_t *queue, const memrt_hook_event_t *event,
                            uint64_t hook);

/// Take the oldest event. Returns false if the queue is empty, or if a thread still writes the
/// oldest event.
bool memrt__event_queue_take(memrt_event_queue_t *queue, memrt_queued_event_t *out);

/// Return whether memrt__event_queue_take() would return an event.
bool memrt__event_queue_has_event(const memrt_event_queue_t *queue);

/// Return the number of events in the queue, which other threads may change at any time.
size_t memrt__event_queue_count(const memrt_event_queue_t *queue);

/// In a forked child: give all events the type 0, and complete events of threads that do not exist
/// in the child. The parent delivers the events.
void memrt__event_queue_forked(memrt_event_queue_t *queue);

#endif
