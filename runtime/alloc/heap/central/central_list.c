#include "runtime/alloc/heap/central/central_list.h"

#include "runtime/alloc/heap/central/central_layout.h"
#include "runtime/alloc/heap/central/detour.h"
#include "runtime/alloc/heap/fast_header.h"
#include "runtime/alloc/heap/large_cache_purge.h"
#include "runtime/alloc/heap/pages/page_heap.h"
#include "runtime/alloc/heap/purger.h"
#include "runtime/alloc/heap/size_class.h"
#include "runtime/base/check.h"
#include "runtime/base/compiler.h"
#include "runtime/os/lock.h"

memrt__central_t memrt__centrals[MEMRT__CLASSES];

static memrt__central_t *const centrals = memrt__centrals;

static void link_span(memrt__central_t *central, memrt__span_t *span)
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

static void unlink_span(memrt__central_t *central, memrt__span_t *span)
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
static size_t choose_span_units(const memrt__central_t *central, size_t bytes)
{
    size_t begin = memrt__size_max(bytes, SPAN_BYTES_MIN);
    size_t wanted = memrt__size_max(central->units * MEMRT__UNIT, begin);
    size_t most = memrt__span_bytes_max(bytes);
    return (memrt__size_min(wanted, most) + MEMRT__UNIT - 1) / MEMRT__UNIT;
}

static memrt__span_t *take_span(memrt__central_t *central, unsigned class, bool *grew)
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
static void *pop_block(memrt__central_t *central, memrt__span_t *span, bool *clean)
{
    MEMRT__ASSERT(memrt__span_has_block(span));
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
    if (!memrt__span_has_block(span)) {
        unlink_span(central, span);
    }
    return block;
}

static void *take_block(unsigned class, bool *clean, bool *grew)
{
    MEMRT__ASSERT_HELD(memrt__central_lock_of(class));
    memrt__central_t *central = &centrals[class];
    memrt__span_t *span = central->spans;
    if (span == NULL) {
        span = take_span(central, class, grew);
    }
    return span == NULL ? NULL : pop_block(central, span, clean);
}

/// Take the only block of a new span.
static void *take_single_block(memrt__central_t *central, unsigned class, memrt__span_t *span)
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

/// Take up to `most` medium blocks, each with a span for itself. Take blocks whose pages are in
/// memory; without such a block, take one block. `*clean` is of the last block.
static list_t take_medium_blocks(unsigned class, size_t most, bool *clean, bool *grew)
{
    MEMRT__ASSERT_HELD(memrt__central_lock_of(class));
    memrt__central_t *central = &centrals[class];
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

/// Take up to `most` blocks. `*clean` is of the last block.
static list_t take_blocks(unsigned class, size_t most, bool *clean, bool *grew)
{
    list_t list = memrt__class_has_medium_blocks(class)
                      ? take_medium_blocks(class, most, clean, grew)
                      : take_small_blocks(class, most, clean, grew);
    centrals[class].taken += list.count;
    return list;
}

static void join_detour_span(memrt__span_t *span)
{
    MEMRT__ASSERT_HELD(memrt__central_lock_of(span->class));
    MEMRT__ASSERT(span->detoured);
    memrt__central_t *central = &centrals[span->class];
    span->detoured = false;
    central->units += span->units;
    central->taken += span->used;
    if (memrt__span_has_block(span)) {
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
    while (!memrt__lock_or_fork(memrt__central_lock_of(class))) {
        if (memrt__detour_take(class, most, &list.first, &list.count)) {
            *clean = false;
            return list;
        }
    }
    list = take_blocks(class, most, clean, &grew);
    memrt__unlock(memrt__central_lock_of(class));
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

static void push_block(memrt__central_t *central, memrt__span_t *span, void *block)
{
    if (!memrt__span_has_block(span)) {
        link_span(central, span);
    }
    memrt__block_set_next(block, span->free);
    span->free = block;
    span->used--;
    central->unused++;
}

/// Give one block back. If the block was the last in use, add its span to `*empty`.
static void return_block(memrt__central_t *central, void *block, memrt__span_t **empty)
{
    memrt__span_t *span = memrt__page_heap_span_of(block);
    if (MEMRT__UNLIKELY(span->detoured)) {
        /* The forking thread keeps the block until the fork ends. A forked child loses the block.
         */
        memrt__block_set_next(block, NULL);
        (void)!memrt__detour_defer(span->class, block);
        return;
    }
    MEMRT__ASSERT(span->used != 0 && (size_t)((char *)block - span->base) % span->bytes == 0);
    MEMRT__ASSERT(central->taken != 0);
    central->taken--;
    if (span->used > 1) {
        push_block(central, span, block);
        return;
    }
    MEMRT__ASSERT(central->unused + 1 >= memrt__span_count_free(span));
    MEMRT__ASSERT(central->units >= span->units);
    if (memrt__span_has_block(span)) {
        unlink_span(central, span);
    }
    central->unused -= memrt__span_count_free(span) - 1; /* without the returned block */
    central->units -= span->units;
    span->used = 0;
    span->next = *empty;
    *empty = span;
}

void memrt__central_list_give(unsigned class, void *list)
{
    memrt__central_t *central = &centrals[class];
    memrt__span_t *empty = NULL;
    while (!memrt__lock_or_fork(memrt__central_lock_of(class))) {
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
    memrt__unlock(memrt__central_lock_of(class));
    if (empty != NULL) {
        memrt__purger_wake();
    }
}

/// Take the locks of two classes. Returns false, without a lock, while a fork takes long.
static bool lock_classes(unsigned a, unsigned b)
{
    memrt__rank_t first = memrt__central_lock_of(a), last = memrt__central_lock_of(b);
    if (first > last) {
        return lock_classes(b, a);
    }
    if (!memrt__lock_or_fork(first)) {
        return false;
    }
    bool locked = first == last || memrt__lock_or_fork(last);
    if (!locked) {
        memrt__unlock(first);
    }
    return locked;
}

static void unlock_classes(unsigned a, unsigned b)
{
    memrt__unlock(memrt__central_lock_of(a));
    if (memrt__central_lock_of(b) != memrt__central_lock_of(a)) {
        memrt__unlock(memrt__central_lock_of(b));
    }
}

/// Resize a span for one block, for another class. Under the locks of both classes.
static bool resize_span(memrt__span_t *span, unsigned class, bool *grew)
{
    size_t before = span->units,
           units = (memrt__class_bytes(class) + MEMRT__UNIT - 1) / MEMRT__UNIT;
    if (span->detoured || !memrt__page_heap_resize(span, units, grew)) {
        return false;
    }
    centrals[span->class].units -= before;
    centrals[class].units += units;
    centrals[span->class].taken--;
    centrals[class].taken++;
    memrt__span_change_class(span, class);
    return true;
}

bool memrt__central_list_resize(void *block, unsigned old_class, unsigned new_class)
{
    bool grew = false;
    if (!memrt__class_has_own_spans(old_class) || !memrt__class_has_own_spans(new_class) ||
        !lock_classes(old_class, new_class)) {
        return false;
    }
    memrt__span_t *span = memrt__page_heap_span_of(block);
    MEMRT__ASSERT(span->class == old_class && span->base == block);
    bool resized = resize_span(span, new_class, &grew);
    unlock_classes(old_class, new_class);
    if (grew) {
        memrt__large_cache_make_room();
    } else if (resized) {
        memrt__purger_wake();
    }
    return resized;
}

size_t memrt__central_list_cached(void)
{
    size_t bytes = 0;
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        memrt__lock(memrt__central_lock_of(class));
        bytes += centrals[class].unused * memrt__class_bytes(class);
        memrt__unlock(memrt__central_lock_of(class));
    }
    return bytes;
}

size_t memrt__central_list_taken(void)
{
    size_t bytes = 0;
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        memrt__lock(memrt__central_lock_of(class));
        bytes += centrals[class].taken * memrt__class_bytes(class);
        memrt__unlock(memrt__central_lock_of(class));
    }
    return bytes;
}
