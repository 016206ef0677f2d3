#ifndef MEMRT_ALLOC_HEAP_SEGMENT_H
#define MEMRT_ALLOC_HEAP_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/alloc/heap/span.h"
#include "runtime/alloc/heap/unit_bits.h"

/// Segments: mappings of 4 MiB, from which the page heap cuts spans. Each segment begins with a
/// table of its units. This header searches and changes only the tables and the list of segments;
/// page_heap.h counts.

/// Table at the start of a segment. All fields except `head` and `spans` are under the lock of rank
/// PAGES. Each entry of `head` and `spans` belongs to the span that contains the unit.
typedef struct memrt__segment {
    struct memrt__segment *next, *prev;
    size_t longest;           ///< upper bound for the length of free runs, in units
    size_t used_units;        ///< units in spans
    size_t round[2];          ///< number of the last purge of idle units, and of all units
    uint8_t discards;         ///< refused calls; MEMRT__REFUSALS_MAX: no further calls
    uint8_t unmaps;           ///< refused calls; MEMRT__REFUSALS_MAX: no further calls
    memrt__unit_bits_t used;  ///< in a span, or in the table
    memrt__unit_bits_t dirty; ///< possibly not zero
    memrt__unit_bits_t idle;  ///< dirty and free since the last purge
    uint16_t head[MEMRT__SEGMENT_UNITS]; ///< first unit of the span that contains a unit
    memrt__span_t spans[];               ///< by first unit of the span
} memrt__segment_t;

#define MEMRT__SEGMENT_TABLE_BYTES                                                                 \
    (sizeof(memrt__segment_t) + MEMRT__SEGMENT_UNITS * sizeof(memrt__span_t))
#define MEMRT__SEGMENT_TABLE ((MEMRT__SEGMENT_TABLE_BYTES + MEMRT__UNIT - 1) / MEMRT__UNIT)
_Static_assert(MEMRT__SPAN_MAX / MEMRT__UNIT <= MEMRT__SEGMENT_UNITS - MEMRT__SEGMENT_TABLE,
               "a span fits a segment");

/// List of all segments, under the lock of rank PAGE_HEAP.
extern memrt__segment_t *memrt__segments;

/// Maximum number of failed calls of each kind per segment, for example for pages locked in memory.
/// Then memrt waits for memrt__page_heap_retry().
#define MEMRT__REFUSALS_MAX 4u

/// Return the segment that contains `address`, the unit of `address` in the segment, and the
/// address of a unit.
static inline memrt__segment_t *memrt__segment_of(const void *address)
{
    return (memrt__segment_t *)((uintptr_t)address & ~(uintptr_t)(MEMRT__SEGMENT - 1));
}

static inline size_t memrt__unit_of(const void *address)
{
    return ((uintptr_t)address & (MEMRT__SEGMENT - 1)) / MEMRT__UNIT;
}

static inline char *memrt__segment_address_of(memrt__segment_t *segment, size_t unit)
{
    return (char *)segment + unit * MEMRT__UNIT;
}

static inline bool memrt__segment_has_refused_discards(const memrt__segment_t *segment)
{
    return segment->discards == MEMRT__REFUSALS_MAX;
}

/// Map a segment, without linking the segment. Failure: returns NULL when out of memory.
memrt__segment_t *memrt__segment_map(void);

/// Add a segment to the list, and remove a segment from the list. Under the lock of rank PAGE_HEAP.
void memrt__segment_link(memrt__segment_t *segment);
void memrt__segment_unlink(memrt__segment_t *segment);

/// Return the free units; with `dirty`, only the free units that are dirty.
memrt__unit_bits_t memrt__segment_free_units(const memrt__segment_t *segment, bool dirty);

/// Return the units to purge: the idle units, or with `all` every dirty free unit.
memrt__unit_bits_t memrt__segment_purgeable_units(const memrt__segment_t *segment, bool all);

/// Return the first segment of the list with a run of `units` free units, in any units or only in
/// dirty units. `*first` is the first unit of the run. Without such a segment, return NULL. Under
/// the lock of rank PAGE_HEAP.
memrt__segment_t *memrt__segment_search_free(size_t units, size_t *first);
memrt__segment_t *memrt__segment_search_dirty(size_t units, size_t *first);

/// Return the first segment that neither purge `round` nor a later purge of the same kind has
/// visited. Concurrent purges have different numbers, and one visit by the later purge serves both.
/// A purge of idle units leaves work for a purge of all units. Under the lock of rank PAGE_HEAP.
memrt__segment_t *memrt__segment_find_unvisited(size_t round, bool all);

/// Return true if a segment has no spans, and all its dirty units are purgeable, unless the system
/// refused to unmap the segment too often.
bool memrt__segment_can_unmap(const memrt__segment_t *segment, bool all);

/// Return the dirty free units that the system does not take. A segment without spans returns 0
/// while unmapping the whole segment is still possible.
size_t memrt__segment_stuck_units(const memrt__segment_t *segment);

/// Write the table entries of a new span; returns the span. `dirty` units of the span are dirty.
memrt__span_t *memrt__segment_mark_span(memrt__segment_t *segment, size_t first, size_t units,
                                        size_t dirty);

/// Call `each` with each span of a segment whose spans lie without gaps after the table.
void memrt__segment_visit_spans(memrt__segment_t *segment, void (*each)(memrt__span_t *span));

#if MEMRT_DEBUG
/// Return the first span of a segment from `unit` on, or NULL. Spans that the page heap keeps whole
/// are included; such spans have no block in use.
const memrt__span_t *memrt__segment_next_span(const memrt__segment_t *segment, size_t unit);

/// Return whether the invariants of a segment hold. Under the lock of rank PAGE_HEAP.
bool memrt__segment_is_valid(const memrt__segment_t *segment);
#endif

#endif
