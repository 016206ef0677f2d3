/* Replays the allocations of a trace. What an allocator does is in `table`; nothing else than the C
   library is needed. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REPLAY_ALLOC = 1, REPLAY_RESIZE = 2, REPLAY_FREE = 3 };

/* One event: a block gets `size` bytes, or goes. */
typedef struct replay_event {
    uint64_t size;
    uint32_t slot; /* number of the block, from 0 on */
    uint8_t type;
    uint8_t align_log2; /* of what it was aligned to */
    uint16_t reserved;
} replay_event_t;

/* An allocator. NULL from the first two: no memory, and the block is as before. */
typedef struct replay_table {
    void *context;
    void *(*alloc)(void *context, size_t size, unsigned align_log2);
    void *(*resize)(void *context, void *block, size_t old_size, size_t size, unsigned align_log2);
    void (*free)(void *context, void *block, size_t size);
} replay_table_t;

/* What came of it. */
typedef struct replay_outcome {
    uint64_t nanoseconds;
    uint64_t refused;
    uint64_t live, peak; /* bytes */
} replay_outcome_t;

typedef struct replay_block {
    void *address; /* NULL: there is none */
    size_t size;
} replay_block_t;

#define REPLAY_PAGE 4096u

/* Write to each page from `from` on, as a program does that uses its memory. */
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

static uint64_t replay_now(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void replay_count(replay_outcome_t *outcome, size_t before, size_t after)
{
    outcome->live += (uint64_t)after - (uint64_t)before;
    outcome->peak = outcome->live > outcome->peak ? outcome->live : outcome->peak;
}

static void replay_give(const replay_event_t *event, replay_block_t *block,
                        const replay_table_t *table, replay_outcome_t *outcome)
{
    size_t size = (size_t)event->size;
    void *address = block->address == NULL ? table->alloc(table->context, size, event->align_log2)
                                           : table->resize(table->context, block->address,
                                                           block->size, size, event->align_log2);
    if (address == NULL) {
        outcome->refused++;
        return;
    }
    replay_touch(address, block->size, size);
    replay_count(outcome, block->size, size);
    block->address = address;
    block->size = size;
}

static void replay_take(replay_block_t *block, const replay_table_t *table,
                        replay_outcome_t *outcome)
{
    if (block->address != NULL) {
        table->free(table->context, block->address, block->size);
        replay_count(outcome, block->size, 0);
        block->address = NULL;
        block->size = 0;
    }
}

/* `blocks` has room for every slot, all zero. */
static void replay_all(const replay_event_t *events, size_t count, replay_block_t *blocks,
                       const replay_table_t *table, replay_outcome_t *outcome)
{
    uint64_t begin = replay_now();
    memset(outcome, 0, sizeof(*outcome));
    for (size_t i = 0; i < count; i++) {
        replay_block_t *block = &blocks[events[i].slot];
        if (events[i].type == REPLAY_FREE) {
            replay_take(block, table, outcome);
        } else {
            replay_give(&events[i], block, table, outcome);
        }
    }
    outcome->nanoseconds = replay_now() - begin;
}

/* --- malloc, whosever it is. --- */

#define REPLAY_MALLOC_LOG2 4 /* what malloc aligns to */

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

static void *replay_realloc(void *context, void *block, size_t old_size, size_t size,
                            unsigned align_log2)
{
    if (align_log2 <= REPLAY_MALLOC_LOG2) {
        return realloc(block, size == 0 ? 1 : size);
    }
    void *moved = replay_malloc(context, size, align_log2);
    if (moved != NULL) {
        memcpy(moved, block, old_size < size ? old_size : size);
        replay_free(context, block, old_size);
    }
    return moved;
}

static const replay_table_t replay_libc = {NULL, replay_malloc, replay_realloc, replay_free};
