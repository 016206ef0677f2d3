#include "runtime/alloc/heap/pages/segment_rounds.h"

#include "runtime/alloc/heap/pages/segment_list.h"
#include "runtime/base/check.h"
#include "runtime/os/lock.h"

static memrt__segment_list_t queues[MEMRT__ROUNDS];
static size_t last_round; /* number of the round started last */

/// Put a segment at the end of a queue. The number is the newest, so that the queue stays in order
/// while older rounds continue.
static void append_as_visited(memrt__segment_t *segment, memrt__round_t kind)
{
    segment->round[kind] = last_round;
    memrt__segment_list_append(&queues[kind], memrt__links_of_round(kind), segment);
}

void memrt__segment_rounds_add(memrt__segment_t *segment)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PAGE_HEAP);
    for (unsigned kind = 0; kind < MEMRT__ROUNDS; kind++) {
        append_as_visited(segment, kind);
    }
}

void memrt__segment_rounds_remove(memrt__segment_t *segment)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PAGE_HEAP);
    for (unsigned kind = 0; kind < MEMRT__ROUNDS; kind++) {
        memrt__segment_list_remove(&queues[kind], memrt__links_of_round(kind), segment);
    }
}

void memrt__segment_rounds_restore(memrt__segment_t *segment)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PAGE_HEAP);
    for (unsigned kind = 0; kind < MEMRT__ROUNDS; kind++) {
        memrt__segment_list_restore(&queues[kind], memrt__links_of_round(kind), segment);
    }
}

size_t memrt__segment_rounds_start(void)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PAGE_HEAP);
    return ++last_round;
}

memrt__segment_t *memrt__segment_rounds_next(memrt__round_t kind, size_t round)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PAGE_HEAP);
    memrt__segment_t *segment = queues[kind].first;
    if (segment == NULL || segment->round[kind] >= round) {
        return NULL;
    }
    memrt__segment_list_remove(&queues[kind], memrt__links_of_round(kind), segment);
    append_as_visited(segment, kind);
    return segment;
}

memrt__segment_t *memrt__segment_rounds_first(void)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PAGE_HEAP);
    return queues[MEMRT__ROUND_IDLE].first;
}

#if MEMRT_DEBUG

static bool is_queue_valid(memrt__round_t kind, size_t *segments)
{
    memrt__links_t by = memrt__links_of_round(kind);
    const memrt__segment_t *prev = NULL, *segment = queues[kind].first;
    for (*segments = 0; segment != NULL; ++*segments) {
        size_t before = prev == NULL ? 0 : prev->round[kind];
        if (!MEMRT__HOLDS(segment->links[by].prev == prev) ||
            !MEMRT__HOLDS(segment->round[kind] >= before) ||
            !MEMRT__HOLDS(segment->round[kind] <= last_round)) {
            return false;
        }
        prev = segment;
        segment = segment->links[by].next;
    }
    return MEMRT__HOLDS(queues[kind].last == prev);
}

bool memrt__segment_rounds_are_valid(size_t *segments)
{
    size_t all, advice;
    return is_queue_valid(MEMRT__ROUND_IDLE, segments) && is_queue_valid(MEMRT__ROUND_ALL, &all) &&
           is_queue_valid(MEMRT__ROUND_ADVICE, &advice) &&
           MEMRT__HOLDS(all == *segments && advice == *segments);
}

#endif
