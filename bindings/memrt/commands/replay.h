/* Replay the allocations of an event trace through an allocator, and measure time and bytes. The
   code needs only the C library: workers include the file, and exported C programs contain a copy.

   A trace numbers its blocks; a slot is the number of a block. Invariant: a slot without a block
   has address NULL, size 0 and 0 written bytes, so a refused allocation and the later free change
   no sum. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Values of replay_event_t.type. */
enum { REPLAY_ALLOC = 1, REPLAY_RESIZE = 2, REPLAY_FREE = 3 };

/* One event: the block gets `size` bytes, or is freed. */
typedef struct replay_event {
    uint64_t size;
    uint32_t slot; /* number of the block, starting at 0 */
    uint8_t type;
    uint8_t align_log2; /* binary logarithm of the alignment */
    uint16_t reserved;  /* 0 */
} replay_event_t;

/* Functions of an allocator. `alloc` and `resize` return NULL when out of memory, and leave the old
   block unchanged. `resize` keeps the first `used` bytes. */
typedef struct replay_table {
    void *context;
    void *(*alloc)(void *context, size_t size, unsigned align_log2);
    void *(*resize)(void *context, void *block, size_t used, size_t size, unsigned align_log2);
    void (*free)(void *context, void *block, size_t size);
} replay_table_t;

/* Result of a replay. */
typedef struct replay_outcome {
    uint64_t nanoseconds;
    uint64_t refused;    /* requests for which the allocator returned NULL */
    uint64_t live, peak; /* bytes in use, now and at most */
    uint64_t written;    /* live bytes whose pages were written to */
    uint64_t unwritten;  /* maximum of live bytes left unwritten because of the limit */
} replay_outcome_t;

/* Block in a slot. */
typedef struct replay_block {
    void *address; /* NULL while the slot has no block */
    size_t size;
    size_t written; /* length of the first part, whose pages were written to */
} replay_block_t;

#define REPLAY_PAGE 4096u /* bytes */

/* Write to each page of a block between offset `from` and `size`, as a program that uses the memory
   does. */
static void replay_touch(void *block, size_t from, size_t size)
{
    volatile unsigned char *bytes = (volatile unsigned char *)block;
    for (size_t at = from; at < size; at += REPLAY_PAGE) {
        bytes[at] = 1;
    }
    if (size > from) {
        bytes[size - 1] = 1;
    }
}

/* Return the time in nanoseconds. */
static uint64_t replay_now(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Update the bytes in use after a block of `before` bytes got `after` bytes. */
static void replay_count(replay_outcome_t *outcome, size_t before, size_t after)
{
    outcome->live += (uint64_t)after - (uint64_t)before;
    outcome->peak = outcome->live > outcome->peak ? outcome->live : outcome->peak;
}

/* Write to the unwritten pages of a block, until the written bytes of all live blocks reach
   `limit`. */
static void replay_write(replay_block_t *block, uint64_t limit, replay_outcome_t *outcome)
{
    size_t begin = block->written;
    uint64_t room = limit - outcome->written;
    uint64_t left = block->size - begin;
    block->written += (size_t)(left < room ? left : room);
    replay_touch(block->address, begin, block->written);
    outcome->written += block->written - begin;
    if (outcome->live - outcome->written > outcome->unwritten) {
        outcome->unwritten = outcome->live - outcome->written;
    }
}

/* Reduce the count of written bytes after a block shrank to `size`, or was freed. */
static void replay_shrink(replay_block_t *block, size_t size, replay_outcome_t *outcome)
{
    if (block->written > size) {
        outcome->written -= block->written - size;
        block->written = size;
    }
}

/* Serve an event that allocates the block of a slot, or resizes the block. */
static void replay_alloc_or_resize(const replay_event_t *event, replay_block_t *block,
                                   uint64_t limit, const replay_table_t *table,
                                   replay_outcome_t *outcome)
{
    size_t size = (size_t)event->size;
    void *address = block->address == NULL ? table->alloc(table->context, size, event->align_log2)
                                           : table->resize(table->context, block->address,
                                                           block->written, size, event->align_log2);
    if (address == NULL) {
        outcome->refused++;
        return;
    }
    replay_count(outcome, block->size, size);
    block->address = address;
    block->size = size;
    replay_shrink(block, size, outcome);
    replay_write(block, limit, outcome);
}

/* Free the block of a slot. No effect if the allocation was refused. */
static void replay_free_block(replay_block_t *block, const replay_table_t *table,
                              replay_outcome_t *outcome)
{
    if (block->address != NULL) {
        table->free(table->context, block->address, block->size);
        replay_count(outcome, block->size, 0);
        replay_shrink(block, 0, outcome);
        block->address = NULL;
        block->size = 0;
    }
}

/* Replay `count` events in order, and measure the time. `blocks` has an entry for each slot, all
   zero. At most `limit` bytes of live blocks are written to. */
static void replay_all(const replay_event_t *events, size_t count, replay_block_t *blocks,
                       uint64_t limit, const replay_table_t *table, replay_outcome_t *outcome)
{
    uint64_t begin = replay_now();
    memset(outcome, 0, sizeof(*outcome));
    for (size_t i = 0; i < count; i++) {
        replay_block_t *block = &blocks[events[i].slot];
        if (events[i].type == REPLAY_FREE) {
            replay_free_block(block, table, outcome);
        } else {
            replay_alloc_or_resize(&events[i], block, limit, table, outcome);
        }
    }
    outcome->nanoseconds = replay_now() - begin;
}

/* --- The malloc of the process, from the C library or a preloaded allocator. --- */

#define REPLAY_MALLOC_LOG2 4 /* malloc aligns to 16 bytes */

static void *replay_malloc(void *context, size_t size, unsigned align_log2)
{
    (void)context;
    size = size == 0 ? 1 : size;
    if (align_log2 <= REPLAY_MALLOC_LOG2) {
        return malloc(size);
    }
    size_t mask = ((size_t)1 << align_log2) - 1;
    return size > SIZE_MAX - mask ? NULL : aligned_alloc(mask + 1, (size + mask) & ~mask);
}

static void replay_free(void *context, void *block, size_t size)
{
    (void)context;
    (void)size;
    free(block);
}

static void *replay_realloc(void *context, void *block, size_t used, size_t size,
                            unsigned align_log2)
{
    if (align_log2 <= REPLAY_MALLOC_LOG2) {
        return realloc(block, size == 0 ? 1 : size);
    }
    void *moved = replay_malloc(context, size, align_log2);
    if (moved != NULL) {
        memcpy(moved, block, used < size ? used : size);
        replay_free(context, block, used);
    }
    return moved;
}

static const replay_table_t replay_libc = {NULL, replay_malloc, replay_realloc, replay_free};
