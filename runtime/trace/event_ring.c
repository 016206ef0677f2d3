#include "runtime/trace/event_ring.h"

#include <memrt/observe/trace.h>

#include "runtime/base/size.h"
#include "runtime/config/fault_injection.h"
#include "runtime/os/os.h"

bool memrt__event_ring_allocate(memrt__event_ring_t *ring, size_t capacity)
{
    MEMRT__ASSERT(capacity != 0 && capacity <= MEMRT_TRACE_LAST_MAX);
    size_t page = memrt__os_page_size();
    size_t bytes = capacity * (sizeof(*ring->events) + sizeof(*ring->threads));
    bytes = (bytes + page - 1) / page * page;
    char *memory = memrt__fault_is_due() ? NULL : memrt__os_map(bytes, 0, page);
    if (memory == NULL) {
        return false;
    }
    *ring = (memrt__event_ring_t){
        .events = (memrt_trace_event_t *)(void *)memory,
        .threads = (uint32_t *)(void *)(memory + capacity * sizeof(*ring->events)),
        .capacity = capacity,
        .bytes = bytes,
    };
    return true;
}

void memrt__event_ring_free(memrt__event_ring_t *ring)
{
    if (ring->capacity != 0) {
        memrt__os_unmap(ring->events, ring->bytes);
        *ring = (memrt__event_ring_t){0};
    }
}

void memrt__event_ring_put(memrt__event_ring_t *ring, uint32_t thread,
                           const memrt_trace_event_t *events, size_t count)
{
    MEMRT__ASSERT(ring->capacity != 0);
    for (size_t i = 0; i < count; i++) {
        size_t at = (size_t)(ring->total++ % ring->capacity);
        ring->events[at] = events[i];
        ring->threads[at] = thread;
    }
}

uint64_t memrt__event_ring_overwritten(const memrt__event_ring_t *ring)
{
    return ring->total > ring->capacity ? ring->total - ring->capacity : 0;
}

bool memrt__event_ring_next(const memrt__event_ring_t *ring, uint64_t *at, size_t most,
                            memrt__event_ring_run_t *out)
{
    if (*at == ring->total) {
        return false;
    }
    MEMRT__ASSERT(*at < ring->total && *at >= memrt__event_ring_overwritten(ring));
    MEMRT__ASSERT(most != 0);
    size_t start = (size_t)(*at % ring->capacity);
    size_t room = memrt__size_min(ring->capacity - start, most);
    size_t left = (size_t)(ring->total - *at);
    size_t longest = memrt__size_min(room, left);
    size_t count = 1;
    while (count < longest && ring->threads[start + count] == ring->threads[start]) {
        count++;
    }
    *out = (memrt__event_ring_run_t){ring->events + start, count, ring->threads[start]};
    *at += count;
    return true;
}

#if MEMRT_DEBUG

bool memrt__event_ring_is_valid(const memrt__event_ring_t *ring)
{
    size_t used = ring->capacity * (sizeof(*ring->events) + sizeof(*ring->threads));
    return ring->capacity == 0
               ? MEMRT__HOLDS(ring->events == NULL && ring->threads == NULL) &&
                     MEMRT__HOLDS(ring->bytes == 0 && ring->total == 0)
               : MEMRT__HOLDS(ring->capacity <= MEMRT_TRACE_LAST_MAX) &&
                     MEMRT__HOLDS(ring->bytes >= used) &&
                     MEMRT__HOLDS(ring->bytes - used < memrt__os_page_size()) &&
                     MEMRT__HOLDS((void *)ring->threads == ring->events + ring->capacity);
}

#endif
