#include "runtime/alloc/adaptors/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/alloc/allocator.h"
#include "runtime/alloc/file_backed.h"
#include "runtime/alloc/heap/heap.h"
#include "runtime/base/atomics.h"
#include "runtime/base/shield.h"
#include "runtime/base/size.h"
#include "runtime/config/fault_injection.h"

/// Record of a chunk. Records are in a ring, and live as long as the arena, so a thread may read
/// any record at any time. The memory of the chunk begins with the address of the record.
///
/// `state` has the used bytes, in units, and the number of live blocks. One word: an allocation and
/// a free change both at once, so no thread can see an empty chunk as used. Without live blocks,
/// `state` is always EMPTY, CLOSED or HELD.
typedef struct chunk {
    size_t state; ///< any thread, by compare and swap
    void *memory; ///< written by the thread that changes HELD; read while a block is live
    size_t next;  ///< address of the next record; published by release, read by acquire
} chunk_t;

typedef struct arena {
    memrt_allocator_t upstream;
    size_t bytes;   ///< size and alignment of each chunk
    size_t current; ///< record of the chunk for the next block; any thread
    chunk_t first;  ///< the ring is never empty
} arena_t;

/// Unit of used bytes.
#define UNIT ((size_t)16)

/// Bytes before the first block of a chunk.
#define LEAD ((size_t)64)

#define MAKE_STATE(used, live) (((used) / UNIT) << 32 | (live))

/// No block is live, and all bytes are free.
#define EMPTY MAKE_STATE(LEAD, 0)

/// The chunk has no memory. No block fits, as more bytes are used than a chunk may have.
#define CLOSED ((size_t)UINT32_MAX << 32)

/// As CLOSED, while one thread adds or removes the memory.
#define HELD (CLOSED | 1)

_Static_assert(MEMRT__ARENA_CHUNK_MAX <= (((size_t)1 << 31) * UNIT), "used bytes have 32 bits");

/// Records that a search for room reads at most.
#define PROBES 32

static size_t get_used(size_t state)
{
    return (state >> 32) * UNIT;
}

static size_t get_live(size_t state)
{
    return state & UINT32_MAX;
}

static size_t round_up_to(size_t bytes, size_t align)
{
    return (bytes + align - 1) & ~(align - 1);
}

static chunk_t *get_next(const chunk_t *chunk)
{
    return (chunk_t *)memrt__load_acquire(&chunk->next);
}

/// Return whether a block belongs in a chunk. Only the arguments decide, so a free or resize finds
/// the memory again. Such a block fits into each empty chunk.
static bool is_small(const arena_t *arena, size_t size, size_t align)
{
    return size <= arena->bytes / 8 && align <= arena->bytes / 8;
}

/// Allocate behind the used bytes of a chunk. NULL: the chunk has no room. A chunk with a live
/// block keeps its memory, so the memory is read after the block counts.
static void *alloc_in_chunk(const arena_t *arena, chunk_t *chunk, size_t size, size_t align)
{
    size_t before, start, end;
    do {
        before = memrt__load_relaxed(&chunk->state);
        start = round_up_to(get_used(before), align);
        end = round_up_to(start + size, UNIT);
        if (end > arena->bytes) {
            return NULL;
        }
    } while (!memrt__cas_acquire(&chunk->state, before, MAKE_STATE(end, get_live(before) + 1)));
    MEMRT__ASSERT(get_live(before) < UINT32_MAX && chunk->memory != NULL);
    return (char *)chunk->memory + start;
}

/// Add a record without memory behind `after`, in state HELD. NULL: out of memory.
static chunk_t *add_record(chunk_t *after)
{
    MEMRT__KEEP_ERRNO;
    chunk_t *chunk = memrt__fault_is_due() ? NULL : malloc(sizeof(*chunk));
    if (chunk != NULL) {
        chunk->state = HELD;
        chunk->memory = NULL;
        do { /* the exchange goes on with the release of the record that was next */
            chunk->next = memrt__load_relaxed(&after->next);
        } while (!memrt__cas_release(&after->next, chunk->next, (size_t)chunk));
    }
    return chunk;
}

/// Hold a record for new memory: `closed`, unless NULL or held by another thread, else a new record
/// behind `after`. NULL: out of memory.
static chunk_t *hold_record(chunk_t *closed, chunk_t *after)
{
    bool held = closed != NULL && memrt__cas_acquire(&closed->state, CLOSED, HELD);
    return held ? closed : add_record(after);
}

/// Allocate the first block of a new chunk, and make the chunk current. NULL: out of memory.
static void *alloc_in_new_chunk(arena_t *arena, chunk_t *closed, chunk_t *after, size_t size,
                                size_t align)
{
    char *memory = memrt__allocator_alloc(&arena->upstream, arena->bytes, arena->bytes, false);
    chunk_t *chunk = memory != NULL ? hold_record(closed, after) : NULL;
    if (chunk == NULL) {
        if (memory != NULL) {
            memrt__allocator_free(&arena->upstream, memory, arena->bytes, arena->bytes);
        }
        return NULL;
    }
    size_t start = round_up_to(LEAD, align);
    memcpy(memory, &chunk, sizeof(chunk));
    chunk->memory = memory;
    memrt__store_release(&chunk->state, MAKE_STATE(round_up_to(start + size, UNIT), 1));
    memrt__store_release(&arena->current, (size_t)chunk);
    return memory + start;
}

/// Slow path of an allocation: search for room behind `full`, else open a chunk. The oldest chunks
/// follow the current chunk. A new record is behind the last record that the search has read, so
/// that repeated searches read all records.
static void *alloc_elsewhere(arena_t *arena, chunk_t *full, size_t size, size_t align)
{
    chunk_t *chunk = full, *closed = NULL;
    for (unsigned probe = 0; probe < PROBES; probe++) {
        void *ptr = alloc_in_chunk(arena, chunk, size, align);
        if (ptr != NULL) {
            memrt__store_release(&arena->current, (size_t)chunk);
            return ptr;
        }
        closed = memrt__load_relaxed(&chunk->state) == CLOSED ? chunk : closed;
        chunk_t *next = get_next(chunk);
        if (next == full) {
            break;
        }
        chunk = next;
    }
    return alloc_in_new_chunk(arena, closed, chunk, size, align);
}

static void *arena_alloc(void *ctx, size_t size, size_t align)
{
    arena_t *arena = ctx;
    if (!is_small(arena, size, align)) {
        return memrt__allocator_alloc(&arena->upstream, size, align, false);
    }
    chunk_t *chunk = (chunk_t *)memrt__load_acquire(&arena->current);
    void *ptr = alloc_in_chunk(arena, chunk, size, align);
    return MEMRT__LIKELY(ptr != NULL) ? ptr : alloc_elsewhere(arena, chunk, size, align);
}

static void *arena_alloc_zeroed(void *ctx, size_t size, size_t align)
{
    const arena_t *arena = ctx;
    if (!is_small(arena, size, align)) {
        return memrt__allocator_alloc(&arena->upstream, size, align, true);
    }
    void *ptr = arena_alloc(ctx, size, align);
    return ptr == NULL ? NULL : memset(ptr, 0, size);
}

/// Return the record of the chunk of a block, and the offsets of start and end in the chunk.
static chunk_t *find_chunk(const arena_t *arena, const void *ptr, size_t size, size_t *start,
                           size_t *end)
{
    chunk_t *chunk;
    *start = (uintptr_t)ptr & (arena->bytes - 1);
    *end = round_up_to(*start + size, UNIT);
    memcpy(&chunk, (const char *)ptr - *start, sizeof(chunk));
    MEMRT__ASSERT(*start >= LEAD && *end <= arena->bytes);
    MEMRT__ASSERT((const char *)chunk->memory == (const char *)ptr - *start);
    return chunk;
}

/// Return the state of a chunk after the free of a block. The used bytes end at the newest block.
static size_t subtract_block(size_t state, size_t start, size_t end)
{
    MEMRT__ASSERT(get_live(state) != 0 && state != HELD);
    if (get_live(state) == 1) {
        return EMPTY;
    }
    return get_used(state) == end ? MAKE_STATE(start, get_live(state) - 1) : state - 1;
}

/// Free a block. After the change of the state, another thread may take the memory of the chunk.
static void arena_free(void *ctx, void *ptr, size_t size, size_t align)
{
    const arena_t *arena = ctx;
    size_t before, start, end;
    if (!is_small(arena, size, align)) {
        memrt__allocator_free(&arena->upstream, ptr, size, align);
        return;
    }
    chunk_t *chunk = find_chunk(arena, ptr, size, &start, &end);
    do {
        before = memrt__load_relaxed(&chunk->state);
    } while (!memrt__cas_release(&chunk->state, before, subtract_block(before, start, end)));
}

/// Resize a block without a move: grow the newest block of a chunk, or shrink any block. False: the
/// block must move.
static bool resize_in_place(const arena_t *arena, void *ptr, size_t old_size, size_t new_size)
{
    size_t before, start, end;
    chunk_t *chunk = find_chunk(arena, ptr, old_size, &start, &end);
    size_t new_end = round_up_to(start + new_size, UNIT);
    do {
        before = memrt__load_relaxed(&chunk->state);
        if (get_used(before) != end || new_end > arena->bytes) {
            return new_end <= end;
        }
    } while (!memrt__cas_acquire(&chunk->state, before, MAKE_STATE(new_end, get_live(before))));
    return true;
}

static void *arena_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    const arena_t *arena = ctx;
    bool was_small = is_small(arena, old_size, align);
    bool small = is_small(arena, new_size, align);
    if (!was_small && !small) {
        return memrt__allocator_realloc(&arena->upstream, ptr, old_size, new_size, align);
    }
    if (was_small && small && resize_in_place(arena, ptr, old_size, new_size)) {
        return ptr;
    }
    memrt_allocator_t self = {.ctx = ctx, .alloc = arena_alloc, .free = arena_free};
    return memrt__allocator_move(&self, &self, ptr, old_size, new_size, align);
}

/// Give the memory of an empty chunk to the upstream. Returns bytes.
static size_t close_if_empty(const arena_t *arena, chunk_t *chunk)
{
    if (!memrt__cas_acquire(&chunk->state, EMPTY, HELD)) {
        return 0;
    }
    memrt__allocator_free(&arena->upstream, chunk->memory, arena->bytes, arena->bytes);
    chunk->memory = NULL;
    memrt__store_release(&chunk->state, CLOSED);
    return arena->bytes;
}

/// The result of the upstream includes the empty chunks if the upstream has a cache.
static size_t arena_release_unused(void *ctx)
{
    arena_t *arena = ctx;
    chunk_t *chunk = &arena->first;
    size_t bytes = 0;
    do {
        bytes += close_if_empty(arena, chunk);
        chunk = get_next(chunk);
    } while (chunk != &arena->first);
    return memrt__size_max(bytes, memrt__allocator_release_unused(&arena->upstream));
}

static void arena_usage(void *ctx, memrt_allocator_usage_t *out)
{
    const arena_t *arena = ctx;
    const chunk_t *chunk = &arena->first;
    bool shared = memrt__is_shared_heap(&arena->upstream);
    out->cached = shared ? 0 : memrt__allocator_cached(&arena->upstream);
    do {
        out->cached += memrt__load_relaxed(&chunk->state) == EMPTY ? arena->bytes : 0;
        chunk = get_next(chunk);
    } while (chunk != &arena->first);
}

/// Free the memory of a chunk, unless a thread that the fork of the process ended was changing the
/// memory.
static void free_memory(const arena_t *arena, const chunk_t *chunk)
{
    if (chunk->state != CLOSED && chunk->state != HELD) {
        memrt__allocator_free(&arena->upstream, chunk->memory, arena->bytes, arena->bytes);
    }
}

static void arena_destroy(void *ctx)
{
    MEMRT__KEEP_ERRNO;
    arena_t *arena = ctx;
    chunk_t *chunk = get_next(&arena->first);
    while (chunk != &arena->first) {
        chunk_t *next = get_next(chunk);
        free_memory(arena, chunk);
        free(chunk);
        chunk = next;
    }
    free_memory(arena, &arena->first);
    memrt__allocator_destroy(&arena->upstream);
    free(arena);
}

memrt_status_t memrt__arena_new(const memrt_allocator_t *upstream, size_t bytes,
                                memrt_allocator_t *out)
{
    MEMRT__KEEP_ERRNO;
    memrt_allocator_t copy;
    bytes = bytes == 0 ? MEMRT__ARENA_CHUNK : bytes;
    if (!memrt__is_power_of_two(bytes) || bytes < MEMRT__ARENA_CHUNK_MIN ||
        bytes > MEMRT__ARENA_CHUNK_MAX || memrt__upstream_copy(upstream, &copy) != MEMRT_OK) {
        return MEMRT_EINVAL;
    }
    arena_t *arena = memrt__fault_is_due() ? NULL : malloc(sizeof(*arena));
    if (arena == NULL) {
        return MEMRT_ENOMEM;
    }
    *arena = (arena_t){.upstream = copy, .bytes = bytes, .first = {.state = CLOSED}};
    arena->first.next = (size_t)&arena->first;
    arena->current = (size_t)&arena->first;
    *out = (memrt_allocator_t){
        .struct_size = sizeof(*out),
        .version = MEMRT_ALLOCATOR_VERSION,
        .name = "arena",
        .ctx = arena,
        .alloc = arena_alloc,
        .alloc_zeroed = arena_alloc_zeroed,
        .realloc = arena_realloc,
        .free = arena_free,
        .release_unused = arena_release_unused,
        .usage = arena_usage,
        .destroy = arena_destroy,
    };
    return MEMRT_OK;
}

bool memrt__is_arena(const memrt_allocator_t *allocator)
{
    return allocator->alloc == arena_alloc;
}

const memrt_allocator_t *memrt__arena_upstream(const memrt_allocator_t *arena)
{
    MEMRT__ASSERT(memrt__is_arena(arena));
    return &((const arena_t *)arena->ctx)->upstream;
}

#if MEMRT_DEBUG

static bool is_chunk_valid(const arena_t *arena, const chunk_t *chunk)
{
    if (chunk->state == CLOSED || chunk->state == HELD) {
        return true;
    }
    return MEMRT__HOLDS(get_used(chunk->state) >= LEAD) &&
           MEMRT__HOLDS(get_used(chunk->state) <= arena->bytes) &&
           MEMRT__HOLDS(get_live(chunk->state) != 0 || chunk->state == EMPTY) &&
           MEMRT__HOLDS(((uintptr_t)chunk->memory & (arena->bytes - 1)) == 0) &&
           MEMRT__HOLDS(memcmp(chunk->memory, &chunk, sizeof(chunk)) == 0);
}

bool memrt__arena_is_valid(const memrt_allocator_t *allocator)
{
    const arena_t *arena = allocator->ctx;
    const chunk_t *chunk = &arena->first;
    bool valid = MEMRT__HOLDS(memrt__is_arena(allocator));
    do {
        valid = valid && is_chunk_valid(arena, chunk);
        chunk = get_next(chunk);
    } while (valid && chunk != &arena->first);
    return valid;
}

#endif
