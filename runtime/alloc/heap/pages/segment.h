#ifndef MEMRT_ALLOC_HEAP_PAGES_SEGMENT_H
#define MEMRT_ALLOC_HEAP_PAGES_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/alloc/heap/span.h"
#include "runtime/alloc/heap/pages/unit_bits.h"

/// Segments: mappings of 4 MiB, from which the page heap cuts spans. Each segment begins with a
/// table of its units. This header changes only the tables; page_counts.h counts.

/// Kinds of runs of units for which segments are in bins; see segment_bins.h.
typedef enum memrt__runs {
    MEMRT__RUNS_FREE,  ///< free units
    MEMRT__RUNS_DIRTY, ///< dirty free units
    MEMRT__RUNS
} memrt__runs_t;

/// Kinds of rounds over all segments; see segment_rounds.h.
typedef enum memrt__round {
    MEMRT__ROUND_IDLE,   ///< purge of idle units
    MEMRT__ROUND_ALL,    ///< purge of all dirty free units
    MEMRT__ROUND_ADVICE, ///< advice about huge pages
    MEMRT__ROUNDS
} memrt__round_t;

/// Links of a segment: one pair for each kind of runs, then one pair for each kind of rounds.
typedef enum memrt__links {
    /// Segments with new dirty free units.
    MEMRT__LINKS_UNPURGED = (int)MEMRT__RUNS + (int)MEMRT__ROUNDS,
    MEMRT__LINKS
} memrt__links_t;

static inline memrt__links_t memrt__links_of_runs(memrt__runs_t runs)
{
    return (memrt__links_t)runs;
}

static inline memrt__links_t memrt__links_of_round(memrt__round_t kind)
{
    return (memrt__links_t)((int)MEMRT__RUNS + (int)kind);
}

/// Neighbours of a segment in a list.
typedef struct memrt__segment_link {
    struct memrt__segment *next, *prev;
} memrt__segment_link_t;

/// Table at the start of a segment. All fields except `head` and `spans` are under the lock of rank
/// PAGE_HEAP. Each entry of `head` and `spans` belongs to the span that contains the unit.
typedef struct memrt__segment {
    memrt__segment_link_t links[MEMRT__LINKS];
    size_t longest[MEMRT__RUNS]; ///< upper bounds for the length of runs, in units
    size_t used_units;           ///< units in spans
    size_t round[MEMRT__ROUNDS]; ///< number of the last round that visited the segment
    size_t retries;              ///< value of memrt__segment_retries at the last refused call
    uint8_t discards;            ///< refused calls; MEMRT__REFUSALS_MAX: no further calls
    uint8_t unmaps;              ///< refused calls; MEMRT__REFUSALS_MAX: no further calls
    bool unpurged;               ///< in the list of segments with new dirty free units
    memrt__unit_bits_t used;     ///< in a span, or in the table
    memrt__unit_bits_t dirty;    ///< possibly not zero
    memrt__unit_bits_t idle;     ///< dirty and free since the last purge
    memrt__unit_bits_t whole;    ///< first units of whole free spans; see whole_spans.h
    uint16_t head[MEMRT__SEGMENT_UNITS]; ///< first unit of the span that contains a unit
    memrt__span_t spans[];               ///< by first unit of the span
} memrt__segment_t;

#define MEMRT__SEGMENT_TABLE_BYTES                                                                 \
    (sizeof(memrt__segment_t) + MEMRT__SEGMENT_UNITS * sizeof(memrt__span_t))
#define MEMRT__SEGMENT_TABLE ((MEMRT__SEGMENT_TABLE_BYTES + MEMRT__UNIT - 1) / MEMRT__UNIT)
_Static_assert(MEMRT__SPAN_MAX / MEMRT__UNIT <= MEMRT__SEGMENT_UNITS - MEMRT__SEGMENT_TABLE,
               "a span fits a segment");

/// Maximum number of failed calls of each kind per segment, for example for pages locked in memory.
/// Then memrt waits for memrt__page_heap_retry().
#define MEMRT__REFUSALS_MAX 4u

/// Number of calls of memrt__page_heap_retry(). A call ends the refusals of all segments without a
/// visit of each segment. Under the lock of rank PAGE_HEAP.
extern size_t memrt__segment_retries;

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
    return segment->discards == MEMRT__REFUSALS_MAX && segment->retries == memrt__segment_retries;
}

static inline bool memrt__segment_has_refused_unmaps(const memrt__segment_t *segment)
{
    return segment->unmaps == MEMRT__REFUSALS_MAX && segment->retries == memrt__segment_retries;
}

/// Add 1 to `*count`, the refused calls of one kind.
void memrt__segment_count_refusal(memrt__segment_t *segment, uint8_t *count);

/// Map a segment, outside of all lists. Failure: returns NULL when out of memory.
memrt__segment_t *memrt__segment_map(void);

/// Return the free units; with `dirty`, only the free units that are dirty.
memrt__unit_bits_t memrt__segment_free_units(const memrt__segment_t *segment, bool dirty);

/// Return the units to purge: the idle units, or with `all` every dirty free unit.
memrt__unit_bits_t memrt__segment_purgeable_units(const memrt__segment_t *segment, bool all);

/// Return true if a segment has no spans, and all its dirty units are purgeable, unless the system
/// refused to unmap the segment too often.
bool memrt__segment_can_unmap(const memrt__segment_t *segment, bool all);

/// Return the dirty free units that the system does not take. A segment without spans returns 0
/// while unmapping the whole segment is still possible.
size_t memrt__segment_stuck_units(const memrt__segment_t *segment);

/// Write the table entries of a new span; returns the span. `dirty` units of the span are dirty.
memrt__span_t *memrt__segment_mark_span(memrt__segment_t *segment, size_t first, size_t units,
                                        size_t dirty);

/// Add the `units` free units after a span to the span.
void memrt__segment_extend_span(memrt__segment_t *segment, memrt__span_t *span, size_t units);

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
