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
    memrt__segment_t *segment = get_detour_segment(units);
    if (segment == NULL) {
        return NULL;
    }
    memrt__span_t *span = memrt__segment_mark_span(segment, detour_next, units, 0);
    detour_next += units;
    return span;
}

void memrt__page_detour_join(void (*each)(memrt__span_t *span))
{
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
