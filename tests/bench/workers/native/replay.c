/// Replay a trace of record.c on functions with the signatures of NEP 49. Loaded by ctypes.

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "raw.h"
#include "trace.h"

#define PAGE 4096

static void *plain_alloc(void *context, size_t size)
{
    (void)context;
    return malloc(size);
}

static void *plain_calloc(void *context, size_t count, size_t size)
{
    (void)context;
    return calloc(count, size);
}

static void *plain_realloc(void *context, void *block, size_t size)
{
    (void)context;
    return realloc(block, size);
}

static void plain_free(void *context, void *block, size_t size)
{
    (void)context;
    (void)size;
    free(block);
}

/// The process's malloc.
const raw_t plain = {plain_alloc, plain_calloc, plain_realloc, plain_free};

typedef struct block {
    char *data; ///< NULL: not live
    size_t size;
} block_t;

/// Write a byte on each page from offset `from` on, as the recorded program did at some time.
static void touch(block_t *block, size_t from)
{
    for (size_t at = from; at < block->size; at += PAGE)
        ((volatile char *)block->data)[at] = 1;
}

static int play_alloc(const raw_t *raw, const event_t *event, block_t *blocks)
{
    block_t *block = &blocks[event->block];
    block->size = event->size;
    if (event->call == TRACE_CALLOC) {
        block->data = raw->calloc(NULL, 1, event->size);
        return block->data != NULL; /* untouched: programs often leave zeros unwritten */
    }
    block->data = raw->alloc(NULL, event->size);
    if (block->data != NULL)
        touch(block, 0);
    return block->data != NULL;
}

static int play_realloc(const raw_t *raw, const event_t *event, block_t *blocks)
{
    block_t *block = &blocks[event->block], old = blocks[event->old];
    blocks[event->old].data = NULL;
    block->data = raw->realloc(NULL, old.data, event->size);
    block->size = event->size;
    if (block->data != NULL)
        touch(block, old.size);
    return block->data != NULL;
}

static void play_free(const raw_t *raw, block_t *block)
{
    if (block->data != NULL)
        raw->free(NULL, block->data, block->size);
    block->data = NULL;
}

/// Replay `count` events over the zeroed array `blocks`. Returns 0 when memory ran out, else 1.
int replay(const raw_t *raw, const event_t *events, size_t count, block_t *blocks)
{
    for (size_t i = 0; i < count; i++) {
        const event_t *event = &events[i];
        if (event->call == TRACE_FREE)
            play_free(raw, &blocks[event->block]);
        else if (!(event->call == TRACE_REALLOC ? play_realloc : play_alloc)(raw, event, blocks))
            return 0;
    }
    return 1;
}

/// Free the blocks still live after the trace.
void finish(const raw_t *raw, size_t count, block_t *blocks)
{
    for (size_t i = 0; i < count; i++)
        play_free(raw, &blocks[i]);
}
