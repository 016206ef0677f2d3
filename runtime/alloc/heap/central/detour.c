#include "runtime/alloc/heap/central/detour.h"

#include <string.h>

#include "runtime/alloc/heap/fast_header.h"
#include "runtime/alloc/heap/pages/page_heap.h"
#include "runtime/alloc/heap/pages/segment.h"
#include "runtime/alloc/heap/size_class.h"
#include "runtime/base/check.h"
#include "runtime/os/lock.h"

/* Under the lock of rank DETOUR: */
static memrt__segment_t *segments;            /* linked by get_next(); the first segment has room */
static size_t next_unit;                      /* first free unit of the first segment */
static memrt__span_t *spans[MEMRT__CLASSES];  /* the last span of each class */
static void *deferred_blocks[MEMRT__CLASSES]; /* blocks to give back after the fork; linked */

/// Take the lock of rank DETOUR if a fork is in progress. Returns false, without the lock, if the
/// fork is over.
static bool lock_detour(void)
{
    memrt__lock(MEMRT__RANK_DETOUR);
    bool forking = memrt__lock_is_forking();
    if (!forking) {
        memrt__unlock(MEMRT__RANK_DETOUR);
    }
    return forking;
}

/// Return the link to the next segment. Segments of a detour are in no list of the page heap.
static memrt__segment_t **get_next(memrt__segment_t *segment)
{
    return &segment->links[0].next;
}

static memrt__segment_t *get_segment(size_t units)
{
    if (segments == NULL || MEMRT__SEGMENT_UNITS - next_unit < units) {
        memrt__segment_t *segment = memrt__segment_map();
        if (segment == NULL) {
            return NULL;
        }
        *get_next(segment) = segments;
        segments = segment;
        next_unit = MEMRT__SEGMENT_TABLE;
    }
    return segments;
}

/// Cut a span from a segment made during the fork. Failure: returns NULL when out of memory.
static memrt__span_t *cut_span(size_t units)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_DETOUR);
    MEMRT__ASSERT(units != 0 && units <= MEMRT__SPAN_MAX / MEMRT__UNIT);
    memrt__segment_t *segment = get_segment(units);
    if (segment == NULL) {
        return NULL;
    }
    memrt__span_t *span = memrt__segment_mark_span(segment, next_unit, units, 0);
    next_unit += units;
    MEMRT__ASSERT(next_unit <= MEMRT__SEGMENT_UNITS);
    return span;
}

static memrt__span_t *take_detour_span(unsigned class)
{
    size_t bytes = memrt__span_bytes_max(memrt__class_bytes(class));
    memrt__span_t *span = cut_span((bytes + MEMRT__UNIT - 1) / MEMRT__UNIT);
    if (span != NULL) {
        memrt__span_init(span, class);
        span->detoured = true;
        spans[class] = span;
    }
    return span;
}

/// Take a block from a span made during the fork. Failure: returns NULL when out of memory.
static void *take_detour_block(unsigned class)
{
    memrt__span_t *span = spans[class];
    if (span == NULL || span->fresh == span->end) {
        span = take_detour_span(class);
    }
    if (span == NULL) {
        return NULL;
    }
    MEMRT__ASSERT(span->detoured && span->class == class);
    void *block = span->fresh;
    span->fresh += span->bytes;
    span->used++;
    memrt__cached_header_write(class, block);
    return block;
}

bool memrt__detour_take(unsigned class, size_t most, void **list, size_t *taken)
{
    if (!lock_detour()) {
        return false;
    }
    void *block;
    *list = NULL;
    *taken = 0;
    while (*taken < most && (block = take_detour_block(class)) != NULL) {
        memrt__block_set_next(block, *list);
        *list = block;
        ++*taken;
    }
    memrt__unlock(MEMRT__RANK_DETOUR);
    return true;
}

bool memrt__detour_defer(unsigned class, void *list)
{
    if (!lock_detour()) {
        return false;
    }
    while (list != NULL) {
        void *block = list;
        list = memrt__block_next(block);
        memrt__block_set_next(block, deferred_blocks[class]);
        deferred_blocks[class] = block;
    }
    memrt__unlock(MEMRT__RANK_DETOUR);
    return true;
}

/// Move the segments to the page heap, and call `each` with each span.
static void join_segments(void (*each)(memrt__span_t *span))
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_DETOUR);
    memrt__lock(MEMRT__RANK_PAGE_HEAP);
    while (segments != NULL) {
        memrt__segment_t *segment = segments;
        segments = *get_next(segment);
        memrt__page_heap_adopt(segment);
        memrt__segment_visit_spans(segment, each);
    }
    memrt__unlock(MEMRT__RANK_PAGE_HEAP);
}

void memrt__detour_end(void (*each)(memrt__span_t *span), void *lists[MEMRT__CLASSES])
{
    MEMRT__ASSERT(memrt__lock_is_mine());
    memrt__lock(MEMRT__RANK_DETOUR);
    join_segments(each);
    memcpy(lists, deferred_blocks, sizeof(deferred_blocks));
    memset(deferred_blocks, 0, sizeof(deferred_blocks));
    memset(spans, 0, sizeof(spans));
    memrt__lock_end_fork();
    memrt__unlock(MEMRT__RANK_DETOUR);
}

void memrt__detour_forget(void)
{
    memset(deferred_blocks, 0, sizeof(deferred_blocks));
    memset(spans, 0, sizeof(spans));
    segments = NULL;
}

#if MEMRT_DEBUG

static bool are_segments_valid(void)
{
    bool valid = MEMRT__HOLDS(segments == NULL || memrt__lock_is_forking());
    for (memrt__segment_t *s = segments; valid && s != NULL; s = *get_next(s)) {
        /* spans lie without gaps after the table */
        size_t end = MEMRT__SEGMENT_TABLE + s->used_units;
        valid = memrt__segment_is_valid(s) && MEMRT__HOLDS(s != segments || next_unit == end) &&
                MEMRT__HOLDS(memrt__unit_bits_find(&s->used, 0, false) == end);
    }
    return valid;
}

bool memrt__detour_is_valid(void)
{
    memrt__lock(MEMRT__RANK_DETOUR);
    bool valid = are_segments_valid(), forking = memrt__lock_is_forking();
    for (unsigned class = 0; valid && class < MEMRT__CLASSES; class++) {
        valid = MEMRT__HOLDS(spans[class] == NULL || forking) &&
                MEMRT__HOLDS(deferred_blocks[class] == NULL || forking);
    }
    memrt__unlock(MEMRT__RANK_DETOUR);
    return valid;
}

#endif
