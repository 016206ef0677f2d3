#ifndef MEMRT_ALLOC_HEAP_PAGES_SEGMENT_LIST_H
#define MEMRT_ALLOC_HEAP_PAGES_SEGMENT_LIST_H

#include <stddef.h>

#include "runtime/alloc/heap/pages/segment.h"
#include "runtime/base/check.h"

/// Doubly linked lists of segments. A list uses one element of `links`, so that a segment can be in
/// several lists. Under the lock of rank PAGE_HEAP. All functions take constant time.
typedef struct memrt__segment_list {
    memrt__segment_t *first, *last;
} memrt__segment_list_t;

/// Set the links of both neighbours to a segment, or with `in` false to the other neighbour.
static inline void memrt__segment_list_join(memrt__segment_list_t *list, memrt__links_t by,
                                            memrt__segment_t *segment, bool in)
{
    memrt__segment_link_t *link = &segment->links[by];
    *(link->prev == NULL ? &list->first : &link->prev->links[by].next) = in ? segment : link->next;
    *(link->next == NULL ? &list->last : &link->next->links[by].prev) = in ? segment : link->prev;
}

/// Add a segment at the start of a list.
static inline void memrt__segment_list_push(memrt__segment_list_t *list, memrt__links_t by,
                                            memrt__segment_t *segment)
{
    segment->links[by] = (memrt__segment_link_t){.next = list->first};
    memrt__segment_list_join(list, by, segment, true);
}

/// Add a segment at the end of a list.
static inline void memrt__segment_list_append(memrt__segment_list_t *list, memrt__links_t by,
                                              memrt__segment_t *segment)
{
    segment->links[by] = (memrt__segment_link_t){.prev = list->last};
    memrt__segment_list_join(list, by, segment, true);
}

/// Remove a segment from a list. memrt__segment_list_restore() uses the links of the segment.
static inline void memrt__segment_list_remove(memrt__segment_list_t *list, memrt__links_t by,
                                              memrt__segment_t *segment)
{
    MEMRT__ASSERT(list->first != NULL);
    memrt__segment_list_join(list, by, segment, false);
}

/// Add the segment removed last, at the old place.
static inline void memrt__segment_list_restore(memrt__segment_list_t *list, memrt__links_t by,
                                               memrt__segment_t *segment)
{
    memrt__segment_list_join(list, by, segment, true);
}

#endif
