/// Bounded queue with a turn for each place, after Dmitry Vyukov.

#include "callbacks/event_queue.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static memrt_queue_place_t *get_place(const memrt_event_queue_t *queue, size_t position)
{
    return &queue->places[position % MEMRT_EVENT_QUEUE_LENGTH];
}

bool memrt__event_queue_create(memrt_event_queue_t *queue)
{
    if (queue->places != NULL) {
        return true;
    }
    memrt_queue_place_t *places = calloc(MEMRT_EVENT_QUEUE_LENGTH, sizeof(*places));
    for (size_t i = 0; places != NULL && i < MEMRT_EVENT_QUEUE_LENGTH; i++) {
        atomic_init(&places[i].turn, i);
    }
    queue->places = places;
    return places != NULL;
}

/// Reserve a place, or return NULL if the queue is full. Acquire the turn; partner: the release of
/// memrt__event_queue_take(), which has copied the event.
static memrt_queued_event_t *reserve_place(memrt_event_queue_t *queue, size_t *position)
{
    size_t at = atomic_load_explicit(&queue->end, memory_order_relaxed);
    for (;;) {
        memrt_queue_place_t *place = get_place(queue, at);
        size_t turn = atomic_load_explicit(&place->turn, memory_order_acquire);
        if ((ptrdiff_t)(turn - at) < 0) {
            return NULL; /* the place has the event of one round before */
        }
        if (turn != at) { /* GCOV_EXCL_BR_LINE: only if two threads put at the same step */
            at = atomic_load_explicit(&queue->end, memory_order_relaxed);
        } else if (atomic_compare_exchange_weak_explicit(
                       &queue->end, &at, at + 1, memory_order_relaxed, memory_order_relaxed)) {
            *position = at;
            return &place->event;
        }
    }
}

uint64_t memrt__event_clock(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void write_event(memrt_queued_event_t *out, const memrt_hook_event_t *event, uint64_t hook)
{
    const memrt_api_t *api = memrt__api();
    *out = (memrt_queued_event_t){
        .hook = hook,
        .type = event->type,
        .address = (uintptr_t)event->data,
        .size = event->size,
        .old_address = (uintptr_t)event->old_data,
        .old_size = event->old_size,
        .weight = event->weight,
        .site = event->site,
        .thread = PyThread_get_thread_native_id(),
        .time = memrt__event_clock(),
        .scope = event->scope == NULL ? 0 : api->scope_id(event->scope),
    };
    strncpy(out->policy, api->policy_name(event->policy), MEMRT_NAME_MAX);
}

bool memrt__event_queue_put(memrt_event_queue_t *queue, const memrt_hook_event_t *event,
                            uint64_t hook)
{
    size_t position;
    memrt_queued_event_t *out = reserve_place(queue, &position);
    if (out == NULL) {
        return false;
    }
    write_event(out, event, hook);
    atomic_store_explicit(&get_place(queue, position)->turn, position + 1, memory_order_release);
    return true;
}

bool memrt__event_queue_has_event(const memrt_event_queue_t *queue)
{
    size_t position = atomic_load_explicit(&queue->begin, memory_order_relaxed);
    const memrt_queue_place_t *place = get_place(queue, position);
    return atomic_load_explicit(&place->turn, memory_order_acquire) == position + 1;
}

bool memrt__event_queue_take(memrt_event_queue_t *queue, memrt_queued_event_t *out)
{
    size_t position = atomic_load_explicit(&queue->begin, memory_order_relaxed);
    memrt_queue_place_t *place = get_place(queue, position);
    if (atomic_load_explicit(&place->turn, memory_order_acquire) != position + 1) {
        return false;
    }
    *out = place->event;
    atomic_store_explicit(&place->turn, position + MEMRT_EVENT_QUEUE_LENGTH, memory_order_release);
    atomic_store_explicit(&queue->begin, position + 1, memory_order_relaxed);
    return true;
}

size_t memrt__event_queue_count(const memrt_event_queue_t *queue)
{
    size_t begin = atomic_load_explicit(&queue->begin, memory_order_relaxed);
    return atomic_load_explicit(&queue->end, memory_order_relaxed) - begin;
}

void memrt__event_queue_forked(memrt_event_queue_t *queue)
{
    size_t end = atomic_load_explicit(&queue->end, memory_order_relaxed);
    for (size_t i = atomic_load_explicit(&queue->begin, memory_order_relaxed); i != end; i++) {
        memrt_queue_place_t *place = get_place(queue, i);
        if (atomic_load_explicit(&place->turn, memory_order_relaxed) != i + 1) {
            place->event = (memrt_queued_event_t){0}; /* a thread of the parent was at work */
            atomic_store_explicit(&place->turn, i + 1, memory_order_relaxed);
        }
        place->event.type = 0;
    }
}
