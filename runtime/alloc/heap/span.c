#include "runtime/alloc/heap/span.h"

#include "runtime/alloc/heap/size_class.h"
#include "runtime/base/check.h"
#include "runtime/base/size.h"
#include "runtime/os/os.h"

#define LINK_MARK ((size_t)1 << 63) /* no address has this bit */

memrt__link_t memrt__link = {LINK_MARK};

void memrt__link_start(void)
{
    memrt__link.key = memrt__os_random() | LINK_MARK;
}

void memrt__link_refuse(const void *next)
{
    memrt__abort(
        "a free block was overwritten: the link to the next block decodes to %p; a program "
        "must not write to freed memory, or past the end of a block" MEMRT__CHECK_HINT,
        next);
}

/* Minimum bytes and blocks of a full-length span that several blocks share. */
#define SPAN_BYTES ((size_t)64 << 10)
#define SPAN_BLOCKS 8u

size_t memrt__span_bytes_max(size_t bytes)
{
    return bytes < MEMRT__OWN_SPAN_FROM ? memrt__size_max(SPAN_BYTES, bytes * SPAN_BLOCKS) : bytes;
}

void memrt__span_init(memrt__span_t *span, unsigned class)
{
    size_t bytes = memrt__class_bytes(class);
    char *start = memrt__start_of_pages(span->base); /* without the offset of a former block */
    size_t offset = memrt__class_has_own_spans(class) ? memrt__start_offset(start) : 0;
    span->bytes = bytes;
    span->class = (uint8_t)class;
    span->base = span->fresh = start + offset;
    span->end = span->base + (span->units * MEMRT__UNIT - offset) / bytes * bytes;
    MEMRT__ASSERT(span->end > span->base); /* room for a block at least */
}

void memrt__span_change_class(memrt__span_t *span, unsigned class)
{
    MEMRT__ASSERT(span->used == 1 && span->free == NULL && span->fresh == span->end);
    span->bytes = memrt__class_bytes(class);
    span->class = (uint8_t)class;
    span->end = span->fresh = span->base + span->bytes;
    MEMRT__ASSERT(span->end <=
                  (char *)memrt__start_of_pages(span->base) + span->units * MEMRT__UNIT);
}

#if MEMRT_DEBUG

static size_t get_offset(const memrt__span_t *span, const void *address)
{
    return (size_t)((const char *)address - span->base);
}

/// Return whether `block` is the start of a block that was handed out before.
static bool is_block_of_span(const memrt__span_t *span, const void *block)
{
    return (const char *)block >= span->base && (const char *)block < span->fresh &&
           get_offset(span, block) % span->bytes == 0;
}

/// Return whether the list `free` has `count` blocks of the span and then ends.
static bool is_free_list_valid(const memrt__span_t *span, size_t count)
{
    void *block = span->free;
    while (block != NULL && count != 0) {
        if (!MEMRT__HOLDS(is_block_of_span(span, block))) {
            return false;
        }
        block = memrt__block_next(block);
        count--;
    }
    return MEMRT__HOLDS(block == NULL && count == 0);
}

bool memrt__span_is_valid(const memrt__span_t *span)
{
    size_t bytes = span->units * MEMRT__UNIT;
    return MEMRT__HOLDS(span->units != 0 && bytes <= MEMRT__SPAN_MAX) &&
           MEMRT__HOLDS(span->class < MEMRT__CLASSES) &&
           MEMRT__HOLDS(span->bytes == memrt__class_bytes(span->class)) &&
           MEMRT__HOLDS(((size_t)span->base & (MEMRT__UNIT - 1)) <= MEMRT__START_MAX) &&
           MEMRT__HOLDS(span->end == span->base + bytes / span->bytes * span->bytes) &&
           MEMRT__HOLDS(span->base <= span->fresh && span->fresh <= span->end) &&
           MEMRT__HOLDS(get_offset(span, span->fresh) % span->bytes == 0) &&
           MEMRT__HOLDS(span->used <= get_offset(span, span->fresh) / span->bytes) &&
           is_free_list_valid(span, get_offset(span, span->fresh) / span->bytes - span->used);
}

#endif
