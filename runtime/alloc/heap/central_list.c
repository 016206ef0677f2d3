#include "runtime/alloc/heap/central_list.h"

#include "runtime/alloc/heap/detour.h"
#include "runtime/alloc/heap/fast_header.h"
#include "runtime/alloc/heap/large_cache_purge.h"
#include "runtime/alloc/heap/pages/page_heap.h"
#include "runtime/alloc/heap/pages/segment_rounds.h"
#include "runtime/alloc/heap/purger.h"
#include "runtime/alloc/heap/size_class.h"
#include "runtime/base/check.h"
#include "runtime/base/compiler.h"
#include "runtime/os/lock.h"

/// Central list of one class. Invariant: a span is in the list if and only if the span has a block
/// to give.
typedef struct central {
    _Alignas(MEMRT__CACHE_LINE) memrt__span_t *spans; ///< under the class's lock
    size_t unused; ///< under the lock; blocks in the `free` lists of spans
    size_t units;  ///< under the lock; units in spans of the class
} central_t;

static central_t centrals[MEMRT__CLASSES];

static memrt__rank_t get_class_lock(unsigned class)
{
    MEMRT__ASSERT(class < MEMRT__CLASSES);
    unsigned locks = MEMRT__RANK_CLASS_LAST - MEMRT__RANK_CLASS + 1;
    return (memrt__rank_t)(MEMRT__RANK_CLASS + class % locks);
}

static bool has_block(const memrt__span_t *span)
{
    return span->free != NULL || span->fresh != span->end;
}

static void link_span(central_t *central, memrt__span_t *span)
{
    MEMRT__ASSERT(!span->detoured);
    MEMRT__ASSERT(central->spans == NULL || central->spans->prev == NULL);
    span->prev = NULL;
    span->next = central->spans;
    if (span->next != NULL) {
        span->next->prev = span;
    }
    central->spans = span;
}

static void unlink_span(central_t *central, memrt__span_t *span)
{
    MEMRT__ASSERT(span == (span->prev == NULL ? central->spans : span->prev->next));
    MEMRT__ASSERT(span->next == NULL || span->next->prev == span);
    *(span->prev == NULL ? &central->spans : &span->prev->next) = span->next;
    if (span->next != NULL) {
        span->next->prev = span->prev;
    }
}

#define SPAN_BYTES_MIN ((size_t)16 << 10)

/// Return the units of the next span. A class starts with a small span, and each further span
/// doubles the class, up to memrt__span_bytes_max().
static size_t choose_span_units(const central_t *central, size_t bytes)
{
    size_t begin = memrt__size_max(bytes, SPAN_BYTES_MIN);
    size_t wanted = memrt__size_max(central->units * MEMRT__UNIT, begin);
    size_t most = memrt__span_bytes_max(bytes);
    return (memrt__size_min(wanted, most) + MEMRT__UNIT - 1) / MEMRT__UNIT;
}

static memrt__span_t *take_span(central_t *central, unsigned class, bool *grew)
{
    size_t units = choose_span_units(central, memrt__class_bytes(class));
    memrt__span_t *span = memrt__page_heap_take(units, grew);
    if (span != NULL) {
        central->units += span->units;
        memrt__span_init(span, class);
        link_span(central, span);
    }
    return span;
}

/// Take a block from a span. Blocks given back come first, because their pages are already in
/// memory.
static void *pop_block(central_t *central, memrt__span_t *span, bool *clean)
{
    MEMRT__ASSERT(has_block(span));
    void *block = span->free;
    *clean = false;
    if (block != NULL) {
        MEMRT__ASSERT(central->unused != 0);
        span->free = memrt__block_next(block);
        central->unused--;
    } else {
        block = span->fresh;
        span->fresh += span->bytes;
        *clean = span->clean;
        memrt__cached_header_write(span->class, block);
    }
    span->used++;
    if (!has_block(span)) {
        unlink_span(central, span);
    }
    return block;
}

static void *take_block(unsigned class, bool *clean, bool *grew)
{
    MEMRT__ASSERT_HELD(get_class_lock(class));
    central_t *central = &centrals[class];
    memrt__span_t *span = central->spans;
    if (span == NULL) {
        span = take_span(central, class, grew);
    }
    return span == NULL ? NULL : pop_block(central, span, clean);
}

/// Take the only block of a new span.
static void *take_single_block(central_t *central, unsigned class, memrt__span_t *span)
{
    memrt__span_init(span, class);
    MEMRT__ASSERT(span->end == span->base + span->bytes && span->used == 0);
    central->units += span->units;
    span->fresh = span->end;
    span->used = 1;
    memrt__cached_header_write(class, span->base);
    return span->base;
}

/// List of blocks that grows at its end. The last block has no link yet.
typedef struct list {
    void *first, *last;
    size_t count;
} list_t;

static void append(list_t *list, void *block)
{
    if (list->count++ == 0) {
        list->first = block;
    } else {
        memrt__block_set_next(list->last, block);
    }
    list->last = block;
}

/// Take up to `most` large blocks. Each large block has a span. Take blocks whose pages are in
/// memory; if there is none, take one block. `*clean` is of the last block.
static list_t take_large_blocks(unsigned class, size_t most, bool *clean, bool *grew)
{
    MEMRT__ASSERT_HELD(get_class_lock(class));
    central_t *central = &centrals[class];
    MEMRT__ASSERT(central->spans == NULL && most != 0);
    size_t units = choose_span_units(central, memrt__class_bytes(class));
    memrt__span_t *spans = memrt__page_heap_take_whole(units, most);
    if (spans == NULL) {
        spans = memrt__page_heap_take(units, grew);
    }
    list_t list = {0};
    while (spans != NULL) {
        memrt__span_t *next = spans->next;
        *clean = spans->clean;
        append(&list, take_single_block(central, class, spans));
        spans = next;
    }
    return list;
}

/// Take up to `most` blocks. `*clean` is of the last block.
static list_t take_small_blocks(unsigned class, size_t most, bool *clean, bool *grew)
{
    list_t list = {0};
    void *block;
    while (list.count < most && (block = take_block(class, clean, grew)) != NULL) {
        append(&list, block);
    }
    return list;
}

static void join_detour_span(memrt__span_t *span)
{
    MEMRT__ASSERT_HELD(get_class_lock(span->class));
    MEMRT__ASSERT(span->detoured);
    central_t *central = &centrals[span->class];
    span->detoured = false;
    central->units += span->units;
    if (has_block(span)) {
        link_span(central, span);
    }
}

void memrt__central_list_settle(void)
{
    void *lists[MEMRT__CLASSES];
    memrt__detour_end(join_detour_span, lists);
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        if (lists[class] != NULL) {
            memrt__central_list_give(class, lists[class]);
        }
    }
}

/// Take up to `most` blocks. System calls that reclaim memory run after the lock of the class is
/// released.
static list_t try_take(unsigned class, size_t most, bool *clean)
{
    list_t list = {0};
    bool grew = false;
    while (!memrt__lock_or_fork(get_class_lock(class))) {
        if (memrt__detour_take(class, most, &list.first, &list.count)) {
            *clean = false;
            return list;
        }
    }
    list = memrt__class_has_large_blocks(class) ? take_large_blocks(class, most, clean, &grew)
                                                : take_small_blocks(class, most, clean, &grew);
    memrt__unlock(get_class_lock(class));
    if (grew) {
        memrt__large_cache_make_room();
    }
    return list;
}

/// Take blocks. On failure, retry after unmapping all cached mappings, because the system may then
/// have memory.
static list_t take(unsigned class, size_t most, bool *clean)
{
    list_t list = try_take(class, most, clean);
    return list.count == 0 && memrt__large_cache_purge_all() != 0 ? try_take(class, most, clean)
                                                                  : list;
}

void *memrt__central_list_take(unsigned class, size_t most, size_t *taken)
{
    bool clean;
    list_t list = take(class, most, &clean);
    if (list.last != NULL) { /* a list of the detour has its end already */
        memrt__block_set_next(list.last, NULL);
    }
    *taken = list.count;
    return list.first;
}

void *memrt__central_list_take_one(unsigned class, bool *clean)
{
    return take(class, 1, clean).first;
}

static void push_block(central_t *central, memrt__span_t *span, void *block)
{
    if (!has_block(span)) {
        link_span(central, span);
    }
    memrt__block_set_next(block, span->free);
    span->free = block;
    span->used--;
    central->unused++;
}

/// Return the length of the `free` list of a span without used blocks.
static size_t count_free_blocks(const memrt__span_t *span)
{
    return (size_t)(span->fresh - span->base) / span->bytes;
}

/// Give one block back. If the block was the last in use, add its span to `*empty`.
static void return_block(central_t *central, void *block, memrt__span_t **empty)
{
    memrt__span_t *span = memrt__page_heap_span_of(block);
    if (MEMRT__UNLIKELY(span->detoured)) { /* by the forking thread; a child loses the block */
        memrt__block_set_next(block, NULL);
        (void)!memrt__detour_defer(span->class, block);
        return;
    }
    MEMRT__ASSERT(span->used != 0 && (size_t)((char *)block - span->base) % span->bytes == 0);
    if (span->used > 1) {
        push_block(central, span, block);
        return;
    }
    MEMRT__ASSERT(central->unused + 1 >= count_free_blocks(span));
    MEMRT__ASSERT(central->units >= span->units);
    if (has_block(span)) {
        unlink_span(central, span);
    }
    central->unused -= count_free_blocks(span) - 1; /* without the returned block */
    central->units -= span->units;
    span->used = 0;
    span->next = *empty;
    *empty = span;
}

void memrt__central_list_give(unsigned class, void *list)
{
    central_t *central = &centrals[class];
    memrt__span_t *empty = NULL;
    while (!memrt__lock_or_fork(get_class_lock(class))) {
        if (memrt__detour_defer(class, list)) {
            return;
        }
    }
    while (list != NULL) {
        void *block = list;
        list = memrt__block_next(block);
        return_block(central, block, &empty);
    }
    if (empty != NULL) {
        memrt__page_heap_give(empty);
    }
    memrt__unlock(get_class_lock(class));
    if (empty != NULL) {
        memrt__purger_wake();
    }
}

size_t memrt__central_list_cached(void)
{
    size_t bytes = 0;
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        memrt__lock(get_class_lock(class));
        bytes += centrals[class].unused * memrt__class_bytes(class);
        memrt__unlock(get_class_lock(class));
    }
    return bytes;
}

#if MEMRT_DEBUG

/// Sums over the spans of one class.
typedef struct sums {
    size_t units, unused, linked;
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
            sum->unused += count_free_blocks(span) - span->used;
            sum->linked += has_block(span);
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
    const memrt__span_t *prev = NULL, *span = centrals[class].spans;
    size_t count = 0;
    for (; span != NULL && count < sum->linked; prev = span, span = span->next, count++) {
        if (!MEMRT__HOLDS(span->class == class) || !MEMRT__HOLDS(span->prev == prev) ||
            !MEMRT__HOLDS(has_block(span)) || !MEMRT__HOLDS(span->used != 0)) {
            return false;
        }
    }
    return MEMRT__HOLDS(span == NULL && count == sum->linked) &&
           MEMRT__HOLDS(centrals[class].units == sum->units) &&
           MEMRT__HOLDS(centrals[class].unused == sum->unused);
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
