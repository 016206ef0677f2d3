#include "runtime/alloc/pages.h"

#include <string.h>

#include "runtime/alloc/spare.h"
#include "runtime/alloc/warm.h"
#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/base/lock.h"
#include "runtime/base/options.h"
#include "runtime/base/os.h"
#include "runtime/base/size.h"

#define UNITS (MEMRT__SEGMENT / MEMRT__UNIT)
#define WORDS (UNITS / 64)

/// One bit for each unit.
typedef struct bits {
    uint64_t word[WORDS];
} bits_t;

/// All under the lock of rank PAGES but `head` and `spans`, of which each entry belongs to the span
/// that its unit lies in.
typedef struct segment {
    struct segment *next, *prev;
    size_t longest;        ///< no free run is longer than this many units
    size_t used_units;     ///< units in spans
    size_t round;          ///< number of the last purge that came by
    bits_t used;           ///< in a span, or part of this table
    bits_t dirty;          ///< not zero, maybe
    bits_t idle;           ///< dirty and free at the last purge, and since
    uint16_t head[UNITS];  ///< first unit of the span that a unit lies in
    memrt__span_t spans[]; ///< by first unit
} segment_t;

#define TABLE_BYTES (sizeof(segment_t) + UNITS * sizeof(memrt__span_t))
#define TABLE_UNITS ((TABLE_BYTES + MEMRT__UNIT - 1) / MEMRT__UNIT)
_Static_assert(MEMRT__SPAN_MAX / MEMRT__UNIT <= UNITS - TABLE_UNITS, "a span fits a segment");

static segment_t *segments; /* under the lock */

/* Units; written under the lock, read by anybody: */
static size_t in_spans;
static size_t dirty_free;

static size_t most; /* under the lock; units that in_spans was, since nothing was kept */

#define LONG 9u /* units, at least: for one large block, mostly, so that they come and go often */
#define LENGTHS (MEMRT__SPAN_MAX / MEMRT__UNIT + 1)

/* Under the lock. Units of whole spans count as dirty and free, but in bitmaps as used. */
static memrt__span_t *whole[LENGTHS]; /* linked by `next` */
static size_t whole_spans;

static segment_t *segment_of(const void *address)
{
    return (segment_t *)((uintptr_t)address & ~(uintptr_t)(MEMRT__SEGMENT - 1));
}

static size_t unit_of(const void *address)
{
    return ((uintptr_t)address & (MEMRT__SEGMENT - 1)) / MEMRT__UNIT;
}

static char *address_of(segment_t *segment, size_t unit)
{
    return (char *)segment + unit * MEMRT__UNIT;
}

/// First unit from `from` on whose bit is `set`; UNITS for none.
static size_t find(const bits_t *bits, size_t from, bool set)
{
    while (from < UNITS) {
        uint64_t word = set ? bits->word[from / 64] : ~bits->word[from / 64];
        word &= ~(uint64_t)0 << (from % 64);
        if (word != 0) {
            return (from & ~(size_t)63) + (size_t)__builtin_ctzll(word);
        }
        from = (from & ~(size_t)63) + 64;
    }
    return UNITS;
}

/// The bits of a run of units that lie in one word.
static uint64_t mask_in(size_t word, size_t from, size_t count)
{
    size_t first = word * 64;
    uint64_t mask = ~(uint64_t)0;
    if (from > first) {
        mask &= ~(uint64_t)0 << (from - first);
    }
    if (from + count < first + 64) {
        mask &= ~(~(uint64_t)0 << (from + count - first));
    }
    return mask;
}

static void set_run(bits_t *bits, size_t from, size_t count)
{
    for (size_t word = from / 64; word <= (from + count - 1) / 64; word++) {
        bits->word[word] |= mask_in(word, from, count);
    }
}

static void clear_run(bits_t *bits, size_t from, size_t count)
{
    for (size_t word = from / 64; word <= (from + count - 1) / 64; word++) {
        bits->word[word] &= ~mask_in(word, from, count);
    }
}

static size_t count_run(const bits_t *bits, size_t from, size_t count)
{
    size_t sum = 0;
    for (size_t word = from / 64; word <= (from + count - 1) / 64; word++) {
        sum += (size_t)__builtin_popcountll(bits->word[word] & mask_in(word, from, count));
    }
    return sum;
}

/// First unit of the first run of `count` bits that are set; UNITS for none, and then `*longest` is
/// the length of the longest there is.
static size_t find_run(const bits_t *bits, size_t count, size_t *longest)
{
    *longest = 0;
    size_t start = find(bits, 0, true);
    while (start < UNITS) {
        size_t end = find(bits, start, false);
        if (end - start >= count) {
            return start;
        }
        *longest = memrt__size_max(*longest, end - start);
        start = find(bits, end, true);
    }
    return UNITS;
}

/// Free units, or only those that are dirty, too.
static bits_t free_units(const segment_t *segment, bool dirty)
{
    bits_t bits;
    for (size_t word = 0; word < WORDS; word++) {
        bits.word[word] =
            ~segment->used.word[word] & (dirty ? segment->dirty.word[word] : ~(uint64_t)0);
    }
    return bits;
}

static size_t find_room(segment_t *segment, size_t count)
{
    size_t longest;
    bits_t bits = free_units(segment, false);
    size_t first = find_run(&bits, count, &longest);
    if (first == UNITS) {
        segment->longest = longest;
    }
    return first;
}

static size_t find_dirty_room(segment_t *segment, size_t count)
{
    size_t longest;
    bits_t bits = free_units(segment, true);
    return find_run(&bits, count, &longest);
}

static void link_segment(segment_t *segment)
{
    segment->prev = NULL;
    segment->next = segments;
    if (segments != NULL) {
        segments->prev = segment;
    }
    segments = segment;
}

static void unlink_segment(segment_t *segment)
{
    *(segment->prev == NULL ? &segments : &segment->prev->next) = segment->next;
    if (segment->next != NULL) {
        segment->next->prev = segment->prev;
    }
}

/// Fresh pages are zero, so all but the table's own units is set already.
static segment_t *new_segment(void)
{
    segment_t *segment = memrt__os_map(MEMRT__SEGMENT, 0, MEMRT__SEGMENT);
    if (segment != NULL) {
        if (memrt__load_relaxed(&memrt__options.huge_pages) == MEMRT__HUGE_ADVISE) {
            memrt__os_advise_huge(segment, MEMRT__SEGMENT, true);
        }
        segment->longest = UNITS - TABLE_UNITS;
        set_run(&segment->used, 0, TABLE_UNITS);
        link_segment(segment);
    }
    return segment;
}

static void dissolve(memrt__span_t *span)
{
    segment_t *segment = segment_of(span);
    clear_run(&segment->used, unit_of(span->base), span->units);
    segment->used_units -= span->units;
    segment->longest = UNITS;
}

static memrt__span_t *pop_whole(size_t units)
{
    memrt__span_t *span = whole[units];
    if (span != NULL) {
        whole[units] = span->next;
        whole_spans--;
    }
    return span;
}

static void push_whole(memrt__span_t *span)
{
    span->next = whole[span->units];
    whole[span->units] = span;
    whole_spans++;
}

static void dissolve_all(void)
{
    for (size_t units = LONG; whole_spans != 0; units++) {
        memrt__span_t *span;
        while ((span = pop_whole(units)) != NULL) {
            dissolve(span);
        }
    }
}

typedef size_t (*find_fn)(segment_t *segment, size_t count);

static segment_t *find_in(find_fn look, size_t units, size_t *first)
{
    for (segment_t *segment = segments; segment != NULL; segment = segment->next) {
        if (segment->longest >= units) {
            *first = look(segment, units);
            if (*first < UNITS) {
                return segment;
            }
        }
    }
    return NULL;
}

/// Pages that are in memory already come first.
static segment_t *find_segment(size_t units, size_t *first)
{
    dissolve_all();
    segment_t *segment = dirty_free < units ? NULL : find_in(find_dirty_room, units, first);
    if (segment == NULL) {
        segment = find_in(find_room, units, first);
    }
    if (segment == NULL) {
        *first = TABLE_UNITS;
        segment = new_segment();
    }
    return segment;
}

/// Units go from the free ones, of which so many are dirty, to spans.
static void count_taken(size_t units, size_t dirty)
{
    memrt__own_add(&dirty_free, (size_t)0 - dirty);
    memrt__own_add(&in_spans, units);
    most = memrt__size_max(most, in_spans);
}

static memrt__span_t *cut(segment_t *segment, size_t first, size_t units)
{
    size_t dirty = count_run(&segment->dirty, first, units);
    count_taken(units, dirty);
    segment->used_units += units;
    set_run(&segment->used, first, units);
    set_run(&segment->dirty, first, units);
    clear_run(&segment->idle, first, units);
    for (size_t unit = first; unit < first + units; unit++) {
        segment->head[unit] = (uint16_t)first;
    }
    memrt__span_t *span = &segment->spans[first];
    *span = (memrt__span_t){
        .base = address_of(segment, first), .units = (uint16_t)units, .clean = dirty == 0};
    return span;
}

static memrt__span_t *take_whole(size_t units)
{
    memrt__span_t *span = pop_whole(units);
    if (span != NULL) {
        count_taken(units, units);
        *span = (memrt__span_t){.base = span->base, .units = span->units};
    }
    return span;
}

void memrt__pages_give(memrt__span_t *span)
{
    memrt__lock(MEMRT__RANK_PAGES);
    memrt__own_add(&in_spans, (size_t)0 - span->units);
    memrt__own_add(&dirty_free, span->units);
    if (span->units < LONG) {
        dissolve(span);
    } else {
        push_whole(span);
    }
    memrt__unlock(MEMRT__RANK_PAGES);
}

memrt__span_t *memrt__pages_span_of(const void *address)
{
    segment_t *segment = segment_of(address);
    return &segment->spans[segment->head[unit_of(address)]];
}

/// The bits that stand for units to be purged.
static bits_t purgeable(const segment_t *segment, bool all)
{
    bits_t bits = free_units(segment, true);
    for (size_t word = 0; word < WORDS && !all; word++) {
        bits.word[word] &= segment->idle.word[word];
    }
    return bits;
}

/// Give back what the units from `start` to `end` have of whole pages; returns units.
static size_t discard_run(segment_t *segment, size_t start, size_t end)
{
    size_t page_units = memrt__size_max(memrt__os_page_size() / MEMRT__UNIT, 1);
    start = (start + page_units - 1) / page_units * page_units;
    end = end / page_units * page_units;
    if (start >= end ||
        !memrt__os_discard(address_of(segment, start), (end - start) * MEMRT__UNIT)) {
        return 0;
    }
    clear_run(&segment->dirty, start, end - start);
    clear_run(&segment->idle, start, end - start);
    return end - start;
}

/// Give back each run of `bits`; returns units.
static size_t discard(segment_t *segment, const bits_t *bits)
{
    size_t units = 0;
    size_t start = find(bits, 0, true);
    while (start < UNITS) {
        size_t end = find(bits, start, false);
        units += discard_run(segment, start, end);
        start = find(bits, end, true);
    }
    memrt__own_add(&dirty_free, (size_t)0 - units);
    return units;
}

static size_t count_bits(const bits_t *bits)
{
    return count_run(bits, 0, UNITS);
}

/// A segment without spans goes back whole; false: the system did not take it.
static bool drop(segment_t *segment, size_t *units)
{
    *units = count_bits(&segment->dirty);
    unlink_segment(segment);
    if (!memrt__os_unmap(segment, MEMRT__SEGMENT)) {
        link_segment(segment);
        return false;
    }
    memrt__own_add(&dirty_free, (size_t)0 - *units);
    return true;
}

/// Whether all that a segment has was free for long enough.
static bool is_idle(const segment_t *segment, bool all)
{
    if (segment->used_units != 0) {
        return false;
    }
    bits_t bits = purgeable(segment, all);
    return memcmp(&bits, &segment->dirty, sizeof(bits)) == 0;
}

static size_t purge_one(segment_t *segment, bool all)
{
    size_t units;
    if (is_idle(segment, all) && drop(segment, &units)) {
        return units;
    }
    bits_t bits = purgeable(segment, all);
    units = discard(segment, &bits);
    segment->idle = purgeable(segment, true);
    return units;
}

/// Spans were cut from fresh pages although there are free ones, which are in shorter runs. These
/// go, as far as the process would become larger than it has been.
static void keep_within_bounds(void)
{
    size_t room = most - in_spans + memrt__spare() / MEMRT__UNIT;
    segment_t *segment = segments;
    while (segment != NULL && dirty_free > room) {
        segment_t *next = segment->next;
        purge_one(segment, true);
        segment = next;
    }
}

/// `*grew`: to pages that were not in memory.
static memrt__span_t *take(size_t units, bool *grew)
{
    memrt__lock(MEMRT__RANK_PAGES);
    size_t held = in_spans + dirty_free;
    memrt__span_t *span = take_whole(units);
    if (span == NULL) {
        size_t first;
        segment_t *segment = find_segment(units, &first);
        span = segment == NULL ? NULL : cut(segment, first, units);
    }
    *grew = in_spans + dirty_free > held;
    if (*grew) {
        keep_within_bounds();
    }
    memrt__unlock(MEMRT__RANK_PAGES);
    return span;
}

/// The system may have memory again once no mapping is kept.
memrt__span_t *memrt__pages_take(size_t units)
{
    MEMRT__ASSERT(units != 0 && units <= MEMRT__SPAN_MAX / MEMRT__UNIT);
    bool grew;
    memrt__span_t *span = take(units, &grew);
    if (span == NULL && memrt__warm_purge_all() != 0) {
        span = take(units, &grew);
    }
    if (grew) {
        memrt__spare_look(memrt__os_now_ns());
        memrt__warm_make_room();
    }
    return span;
}

/// Purges that run at the same time have numbers of their own; the later one's visit is enough for
/// both.
static segment_t *first_before(size_t round)
{
    segment_t *segment = segments;
    while (segment != NULL && segment->round >= round) {
        segment = segment->next;
    }
    return segment;
}

/// What was in use before what is kept came free is of the past with it.
static void forget(void)
{
    memrt__lock(MEMRT__RANK_PAGES);
    if (dirty_free == 0) {
        most = in_spans;
    }
    memrt__unlock(MEMRT__RANK_PAGES);
}

/// The lock is let go between segments, so that nobody waits for longer than one takes.
size_t memrt__pages_purge(bool all)
{
    static size_t rounds; /* under the lock */
    size_t bytes = 0;
    memrt__lock(MEMRT__RANK_PAGES);
    size_t round = ++rounds;
    dissolve_all();
    memrt__unlock(MEMRT__RANK_PAGES);
    bool more;
    do {
        memrt__lock(MEMRT__RANK_PAGES);
        segment_t *segment = first_before(round);
        more = segment != NULL;
        if (more) {
            segment->round = round;
            bytes += purge_one(segment, all) * MEMRT__UNIT;
        }
        memrt__unlock(MEMRT__RANK_PAGES);
    } while (more);
    forget();
    return bytes;
}

void memrt__pages_advise(bool huge)
{
    memrt__lock(MEMRT__RANK_PAGES);
    for (segment_t *segment = segments; segment != NULL; segment = segment->next) {
        memrt__os_advise_huge(segment, MEMRT__SEGMENT, huge);
    }
    memrt__unlock(MEMRT__RANK_PAGES);
}

size_t memrt__pages_cached(void)
{
    return memrt__load_relaxed(&dirty_free) * MEMRT__UNIT;
}

size_t memrt__pages_used(void)
{
    return memrt__load_relaxed(&in_spans) * MEMRT__UNIT;
}
