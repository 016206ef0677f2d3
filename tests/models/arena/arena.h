#ifndef MEMRT_TESTS_MODELS_ARENA_ARENA_H
#define MEMRT_TESTS_MODELS_ARENA_ARENA_H

/// The arena, with small chunks and records in static memory. A free by the upstream overwrites the
/// start of a chunk, so that any unordered access to a block is a race.

#include "tests/models/model.h"

#include "runtime/alloc/adaptors/arena.h"
#include "runtime/alloc/allocator.h"
#include "runtime/base/shield.h"

#undef MEMRT__KEEP_ERRNO /* threads share errno in the checker */
#define MEMRT__KEEP_ERRNO ((void)0)

#define CHUNK_BYTES 512
#define BLOCK_BYTES 64
#define CHUNKS 3

static _Alignas(CHUNK_BYTES) char chunks[CHUNKS][CHUNK_BYTES];
static size_t chunks_used;

static inline void *model_map(void)
{
    size_t index = memrt__fetch_add_relaxed(&chunks_used, 1);
    assert(index < CHUNKS);
    return chunks[index];
}

static inline void model_unmap(void *chunk)
{
    *(size_t *)chunk = 7;                         /* the record's address */
    *(size_t *)((char *)chunk + BLOCK_BYTES) = 7; /* the first block */
}

static void *make_record(void);

/* The checker lacks copies between types. All copies of the arena are of one word. */
#define memcpy(to, from, bytes) (*(size_t *)(to) = *(const size_t *)(from))
#define malloc(bytes) make_record()
#define memrt__allocator_alloc(...) model_map()
#define memrt__allocator_free(upstream, chunk, ...) model_unmap(chunk)
#define memrt__arena_new static unused_arena_new /* unused, and the checker refuses its copies */
#include "runtime/alloc/adaptors/arena.c"

unsigned memrt__slow_path;

static arena_t arena;
static chunk_t records[CHUNKS];
static size_t records_used;

static void *make_record(void)
{
    return &records[memrt__fetch_add_relaxed(&records_used, 1)];
}

/// Make an arena whose only record has no memory.
static inline void model_arena(void)
{
    arena.bytes = CHUNK_BYTES;
    arena.first.state = CLOSED;
    arena.first.next = (size_t)&arena.first;
    arena.current = (size_t)&arena.first;
}

/// Allocate a block and write to the block.
static inline size_t *model_block(size_t value)
{
    size_t *block = arena_alloc(&arena, BLOCK_BYTES, 16);
    *block = value;
    return block;
}

/// Check that a block has its value still, and free the block.
static inline void model_end_block(size_t *block, size_t value)
{
    assert(*block == value);
    arena_free(&arena, block, BLOCK_BYTES, 16);
}

static inline void *model_use_block(void *context)
{
    model_end_block(model_block((size_t)context), (size_t)context);
    return NULL;
}

#endif
