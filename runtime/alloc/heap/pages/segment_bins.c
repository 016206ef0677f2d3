#include "runtime/alloc/heap/pages/segment_bins.h"

#include "runtime/alloc/heap/pages/segment_list.h"
#include "runtime/alloc/heap/pages/unit_bits.h"
#include "runtime/base/check.h"
#include "runtime/os/lock.h"

/// One list per bound.
typedef struct bins {
    memrt__segment_list_t list[MEMRT__SEGMENT_UNITS];
    memrt__unit_bits_t filled; ///< lists that are not empty
} bins_t;

static bins_t all_bins[MEMRT__RUNS];

static memrt__segment_list_t *get_list(const memrt__segment_t *segment, memrt__runs_t runs)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PAGE_HEAP);
    MEMRT__ASSERT(segment->longest[runs] < MEMRT__SEGMENT_UNITS);
    return &all_bins[runs].list[segment->longest[runs]];
}

static void add_to_bin(memrt__segment_t *segment, memrt__runs_t runs)
{
    memrt__segment_list_push(get_list(segment, runs), memrt__links_of_runs(runs), segment);
    memrt__unit_bits_set(&all_bins[runs].filled, segment->longest[runs]);
}

static void remove_from_bin(memrt__segment_t *segment, memrt__runs_t runs)
{
    memrt__segment_list_t *list = get_list(segment, runs);
    memrt__segment_list_remove(list, memrt__links_of_runs(runs), segment);
    if (list->first == NULL) {
        memrt__unit_bits_clear(&all_bins[runs].filled, segment->longest[runs]);
    }
}

static void restore_to_bin(memrt__segment_t *segment, memrt__runs_t runs)
{
    memrt__segment_list_restore(get_list(segment, runs), memrt__links_of_runs(runs), segment);
    memrt__unit_bits_set(&all_bins[runs].filled, segment->longest[runs]);
}

static void move_to_bin(memrt__segment_t *segment, memrt__runs_t runs, size_t longest)
{
    if (longest != segment->longest[runs]) {
        remove_from_bin(segment, runs);
        segment->longest[runs] = longest;
        add_to_bin(segment, runs);
    }
}

void memrt__segment_bins_add(memrt__segment_t *segment)
{
    add_to_bin(segment, MEMRT__RUNS_FREE);
    add_to_bin(segment, MEMRT__RUNS_DIRTY);
}

void memrt__segment_bins_remove(memrt__segment_t *segment)
{
    remove_from_bin(segment, MEMRT__RUNS_FREE);
    remove_from_bin(segment, MEMRT__RUNS_DIRTY);
}

void memrt__segment_bins_restore(memrt__segment_t *segment)
{
    restore_to_bin(segment, MEMRT__RUNS_FREE);
    restore_to_bin(segment, MEMRT__RUNS_DIRTY);
}

static void raise_bound(memrt__segment_t *segment, memrt__runs_t runs, size_t unit)
{
    memrt__unit_bits_t bits = memrt__segment_free_units(segment, runs == MEMRT__RUNS_DIRTY);
    size_t length = memrt__unit_bits_run_at(&bits, unit);
    if (length > segment->longest[runs]) {
        move_to_bin(segment, runs, length);
    }
}

void memrt__segment_bins_raise(memrt__segment_t *segment, size_t unit)
{
    raise_bound(segment, MEMRT__RUNS_FREE, unit);
    raise_bound(segment, MEMRT__RUNS_DIRTY, unit);
}

/// Look for a run of `units` units. A failed look corrects the bound of the segment. Returns the
/// first unit of the run, or MEMRT__SEGMENT_UNITS.
static size_t look(memrt__segment_t *segment, memrt__runs_t runs, size_t units)
{
    size_t longest;
    memrt__unit_bits_t bits = memrt__segment_free_units(segment, runs == MEMRT__RUNS_DIRTY);
    size_t first = memrt__unit_bits_find_run(&bits, units, &longest);
    if (first == MEMRT__SEGMENT_UNITS) {
        move_to_bin(segment, runs, longest);
    }
    return first;
}

void memrt__segment_bins_correct_dirty(memrt__segment_t *segment)
{
    look(segment, MEMRT__RUNS_DIRTY, MEMRT__SEGMENT_UNITS);
}

/// Return the first bound from `units` on with a segment, or MEMRT__SEGMENT_UNITS.
static size_t find_filled(memrt__runs_t runs, size_t units)
{
    return memrt__unit_bits_find(&all_bins[runs].filled, units, true);
}

bool memrt__segment_bins_may_have_dirty(size_t units)
{
    return find_filled(MEMRT__RUNS_DIRTY, units) < MEMRT__SEGMENT_UNITS;
}

#if MEMRT_DEBUG

size_t memrt__segment_bins_looks;

static inline void count_look(void)
{
    memrt__segment_bins_looks++;
}

#else

static inline void count_look(void)
{
}

#endif

static memrt__segment_t *find_segment(memrt__runs_t runs, size_t units, size_t *first)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_PAGE_HEAP);
    size_t bound;
    while ((bound = find_filled(runs, units)) < MEMRT__SEGMENT_UNITS) {
        memrt__segment_t *segment = all_bins[runs].list[bound].first;
        MEMRT__ASSERT(segment != NULL && segment->longest[runs] == bound);
        count_look();
        *first = look(segment, runs, units);
        if (*first < MEMRT__SEGMENT_UNITS) {
            return segment;
        }
    }
    return NULL;
}

memrt__segment_t *memrt__segment_bins_find_free(size_t units, size_t *first)
{
    return find_segment(MEMRT__RUNS_FREE, units, first);
}

memrt__segment_t *memrt__segment_bins_find_dirty(size_t units, size_t *first)
{
    return find_segment(MEMRT__RUNS_DIRTY, units, first);
}

#if MEMRT_DEBUG

/// Return the number of segments in a bin, or `most` + 1 if a segment is in the wrong place.
static size_t count_segments(memrt__runs_t runs, size_t bound, size_t most)
{
    memrt__links_t by = memrt__links_of_runs(runs);
    const memrt__segment_list_t *list = &all_bins[runs].list[bound];
    const memrt__segment_t *prev = NULL, *segment = list->first;
    size_t count = 0;
    for (; segment != NULL && count <= most; count++) {
        if (segment->longest[runs] != bound || segment->links[by].prev != prev) {
            return most + 1;
        }
        prev = segment;
        segment = segment->links[by].next;
    }
    return list->last == prev ? count : most + 1;
}

static bool are_bins_valid(memrt__runs_t runs, size_t segments)
{
    size_t sum = 0;
    for (size_t bound = 0; bound < MEMRT__SEGMENT_UNITS; bound++) {
        size_t count = count_segments(runs, bound, segments);
        bool filled = memrt__unit_bits_is_set(&all_bins[runs].filled, bound);
        if (!MEMRT__HOLDS(count <= segments) || !MEMRT__HOLDS(filled == (count != 0))) {
            return false;
        }
        sum += count;
    }
    return MEMRT__HOLDS(sum == segments);
}

bool memrt__segment_bins_are_valid(size_t segments)
{
    return are_bins_valid(MEMRT__RUNS_FREE, segments) &&
           are_bins_valid(MEMRT__RUNS_DIRTY, segments);
}

#endif
