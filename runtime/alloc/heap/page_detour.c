#include "runtime/alloc/heap/page_detour.h"

#include "runtime/alloc/heap/page_heap.h"
#include "runtime/alloc/heap/segment.h"
#include "runtime/os/lock.h"

/* Under the lock of rank DETOUR: */
static memrt__segment_t *detour; /* linked by `next`; the first segment has room */
static size_t detour_next;       /* first free unit of the first segment */

static memrt__segment_t *get_detour_segment(size_t units)
{
    if (detour == NULL || MEMRT__SEGMENT_UNITS - detour_next < units) {
        memrt__segment_t *segment = memrt__segment_map();
        if (segment == NULL) {
            return NULL;
        }
        segment->next = detour;
        detour = segment;
        detour_next = MEMRT__SEGMENT_TABLE;
    }
    return detour;
}

memrt__span_t *memrt__page_detour_take(size_t units)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_DETOUR);
    MEMRT__ASSERT(units != 0 && units <= MEMRT__SPAN_MAX / MEMRT__UNIT);
    memrt__segment_t *segment = get_detour_segment(units);
    if (segment == NULL) {
        return NULL;
    }
    memrt__span_t *span = memrt__segment_mark_span(segment, detour_next, units, 0);
    detour_next += units;
    MEMRT__ASSERT(detour_next <= MEMRT__SEGMENT_UNITS);
    return span;
}

void memrt__page_detour_join(void (*each)(memrt__span_t *span))
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_DETOUR);
    memrt__lock(MEMRT__RANK_PAGE_HEAP);
    while (detour != NULL) {
        memrt__segment_t *segment = detour;
        detour = segment->next;
        memrt__page_heap_adopt(segment);
        memrt__segment_visit_spans(segment, each);
    }
    memrt__unlock(MEMRT__RANK_PAGE_HEAP);
}

void memrt__page_detour_forget(void)
{
    detour = NULL;
}

#if MEMRT_DEBUG

bool memrt__page_detour_is_valid(void)
{
    bool valid = MEMRT__HOLDS(detour == NULL || memrt__lock_is_forking());
    for (const memrt__segment_t *s = detour; valid && s != NULL; s = s->next) {
        /* spans lie without gaps after the table */
        size_t end = MEMRT__SEGMENT_TABLE + s->used_units;
        valid = memrt__segment_is_valid(s) && MEMRT__HOLDS(s != detour || detour_next == end) &&
                MEMRT__HOLDS(memrt__unit_bits_find(&s->used, 0, false) == end);
    }
    return valid;
}

#endif
