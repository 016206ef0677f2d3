#include "runtime/alloc/heap/central/central_list.h"

#include "runtime/alloc/heap/central/central_layout.h"
#include "runtime/alloc/heap/central/detour.h"
#include "runtime/alloc/heap/pages/segment.h"
#include "runtime/alloc/heap/pages/segment_rounds.h"

#if MEMRT_DEBUG

/// Sums over the spans of one class.
typedef struct sums {
    size_t units, unused, taken, linked;
} sums_t;

/// Check the spans of a segment and add up the spans in use. Spans without a block in use belong to
/// the page heap.
static bool add_spans(const memrt__segment_t *segment, sums_t *sums)
{
    size_t next = 0;
    const memrt__span_t *span;
    while ((span = memrt__segment_next_span(segment, next)) != NULL) {
        if (span->used != 0) {
            if (!memrt__span_is_valid(span) || !MEMRT__HOLDS(!span->detoured)) {
                return false;
            }
            sums_t *sum = &sums[span->class];
            sum->units += span->units;
            sum->unused += memrt__span_count_free(span) - span->used;
            sum->taken += span->used;
            sum->linked += memrt__span_has_block(span);
        }
        next = memrt__unit_of(span->base) + span->units;
    }
    return true;
}

static bool add_all_spans(sums_t *sums)
{
    bool valid = true;
    memrt__lock(MEMRT__RANK_PAGE_HEAP);
    for (const memrt__segment_t *s = memrt__segment_rounds_first(); valid && s != NULL;
         s = memrt__segment_rounds_after(s)) {
        valid = add_spans(s, sums);
    }
    memrt__unlock(MEMRT__RANK_PAGE_HEAP);
    return valid;
}

/// Check the list of a class: all spans of the class with a block to give, and no further span.
static bool is_list_valid(unsigned class, const sums_t *sum)
{
    const memrt__span_t *prev = NULL, *span = memrt__centrals[class].spans;
    size_t count = 0;
    for (; span != NULL && count < sum->linked; prev = span, span = span->next, count++) {
        if (!MEMRT__HOLDS(span->class == class) || !MEMRT__HOLDS(span->prev == prev) ||
            !MEMRT__HOLDS(memrt__span_has_block(span)) || !MEMRT__HOLDS(span->used != 0)) {
            return false;
        }
    }
    return MEMRT__HOLDS(span == NULL && count == sum->linked) &&
           MEMRT__HOLDS(memrt__centrals[class].units == sum->units) &&
           MEMRT__HOLDS(memrt__centrals[class].unused == sum->unused) &&
           MEMRT__HOLDS(memrt__centrals[class].taken == sum->taken);
}

bool memrt__central_list_is_valid(void)
{
    sums_t sums[MEMRT__CLASSES] = {{0}};
    for (unsigned rank = MEMRT__RANK_CLASS; rank <= MEMRT__RANK_CLASS_LAST; rank++) {
        memrt__lock((memrt__rank_t)rank);
    }
    bool valid = add_all_spans(sums);
    for (unsigned class = 0; valid && class < MEMRT__CLASSES; class++) {
        valid = is_list_valid(class, &sums[class]);
    }
    for (unsigned rank = MEMRT__RANK_CLASS_LAST; rank >= MEMRT__RANK_CLASS; rank--) {
        memrt__unlock((memrt__rank_t)rank);
    }
    return valid && memrt__detour_is_valid();
}

#endif
