#include "runtime/alloc/central.h"

#include "runtime/alloc/allocator.h"
#include "runtime/alloc/pages.h"
#include "runtime/alloc/purger.h"
#include "runtime/alloc/size_class.h"
#include "runtime/base/check.h"
#include "runtime/base/compiler.h"
#include "runtime/base/lock.h"

/// What there is of one class. Invariant: a span is in the list if and only if it has a block to
/// give.
typedef struct central {
    _Alignas(MEMRT__CACHE_LINE) memrt__span_t *spans; ///< under the class's lock
    size_t unused; ///< under the lock; blocks in the `free` lists of spans
    size_t units;  ///< under the lock; in spans of the class
} central_t;

static central_t centrals[MEMRT__CLASSES];

static memrt__rank_t rank_of(unsigned class)
{
    unsigned locks = MEMRT__RANK_CLASS_LAST - MEMRT__RANK_CLASS + 1;
    return (memrt__rank_t)(MEMRT__RANK_CLASS + class % locks);
}

static void link_span(central_t *central, memrt__span_t *span)
{
    span->prev = NULL;
    span->next = central->spans;
    if (span->next != NULL) {
        span->next->prev = span;
    }
    central->spans = span;
}

static void unlink_span(central_t *central, memrt__span_t *span)
{
    *(span->prev == NULL ? &central->spans : &span->prev->next) = span->next;
    if (span->next != NULL) {
        span->next->prev = span->prev;
    }
}

static bool has_block(const memrt__span_t *span)
{
    return span->free != NULL || span->fresh != span->end;
}

#define SPAN_BYTES ((size_t)64 << 10) /* for small blocks */
#define SPAN_BYTES_MIN ((size_t)16 << 10)
#define SPAN_BLOCKS 8u

/// Bytes of a span, as far as the class is much used: eight small blocks at least. Large blocks
/// have spans of their own, so that each goes back alone.
static size_t span_bytes(size_t bytes)
{
    return bytes < SPAN_BYTES / 2 ? memrt__size_max(SPAN_BYTES, bytes * SPAN_BLOCKS) : bytes;
}

/// A class that has little begins with little, and doubles.
static size_t units_for(const central_t *central, size_t bytes)
{
    size_t begin = memrt__size_max(bytes, SPAN_BYTES_MIN);
    size_t wanted = memrt__size_max(central->units * MEMRT__UNIT, begin);
    size_t most = span_bytes(bytes);
    return (memrt__size_min(wanted, most) + MEMRT__UNIT - 1) / MEMRT__UNIT;
}

static memrt__span_t *new_span(central_t *central, unsigned class)
{
    size_t bytes = memrt__class_bytes(class);
    size_t units = units_for(central, bytes);
    memrt__span_t *span = memrt__pages_take(units);
    if (span != NULL) {
        central->units += units;
        span->bytes = bytes;
        span->class = (uint8_t)class;
        span->fresh = span->base;
        span->end = span->base + units * MEMRT__UNIT / bytes * bytes;
        link_span(central, span);
    }
    return span;
}

/// Blocks given back first: they are in memory already.
static void *pop(central_t *central, memrt__span_t *span, bool *clean)
{
    void *block = span->free;
    *clean = false;
    if (block != NULL) {
        span->free = *memrt__block_next(block);
        central->unused--;
    } else {
        block = span->fresh;
        span->fresh += span->bytes;
        *clean = span->clean;
    }
    span->used++;
    if (!has_block(span)) {
        unlink_span(central, span);
    }
    return block;
}

static void *take_one(unsigned class, bool *clean)
{
    central_t *central = &centrals[class];
    memrt__span_t *span = central->spans;
    if (span == NULL) {
        span = new_span(central, class);
    }
    return span == NULL ? NULL : pop(central, span, clean);
}

void *memrt__central_take_one(unsigned class, bool *clean)
{
    memrt__lock(rank_of(class));
    void *block = take_one(class, clean);
    memrt__unlock(rank_of(class));
    return block;
}

void *memrt__central_take(unsigned class, size_t most, size_t *taken)
{
    void *list = NULL;
    void **end = &list;
    size_t count = 0;
    memrt__lock(rank_of(class));
    while (count < most) {
        bool clean;
        void *block = take_one(class, &clean);
        if (block == NULL) {
            break;
        }
        *end = block;
        end = memrt__block_next(block);
        count++;
    }
    *end = NULL;
    memrt__unlock(rank_of(class));
    *taken = count;
    return list;
}

static void push(central_t *central, memrt__span_t *span, void *block)
{
    if (!has_block(span)) {
        link_span(central, span);
    }
    *memrt__block_next(block) = span->free;
    span->free = block;
    span->used--;
    central->unused++;
}

/// Blocks in the list of a span that nobody uses any more.
static size_t listed_in(const memrt__span_t *span)
{
    return (size_t)(span->fresh - span->base) / span->bytes;
}

/// Whether the span went with it.
static bool give_one(central_t *central, void *block)
{
    memrt__span_t *span = memrt__pages_span_of(block);
    MEMRT__ASSERT(span->used != 0 && (size_t)((char *)block - span->base) % span->bytes == 0);
    push(central, span, block);
    if (span->used == 0) {
        central->unused -= listed_in(span);
        unlink_span(central, span);
        central->units -= span->units;
        memrt__pages_give(span);
        return true;
    }
    return false;
}

void memrt__central_give(unsigned class, void *list)
{
    central_t *central = &centrals[class];
    bool freed_pages = false;
    memrt__lock(rank_of(class));
    while (list != NULL) {
        void *block = list;
        list = *memrt__block_next(block);
        freed_pages |= give_one(central, block);
    }
    memrt__unlock(rank_of(class));
    if (freed_pages) {
        memrt__system_learn(memrt__class_bytes(class));
        memrt__purger_wake();
    }
}

size_t memrt__central_cached(void)
{
    size_t bytes = 0;
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        memrt__lock(rank_of(class));
        bytes += centrals[class].unused * memrt__class_bytes(class);
        memrt__unlock(rank_of(class));
    }
    return bytes;
}
