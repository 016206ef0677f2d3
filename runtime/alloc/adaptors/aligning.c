/// Aligning adaptor: serves each alignment over an upstream that honours small alignments only.

#include <stdint.h>

#include "runtime/alloc/adaptors/adaptor_functions.h"
#include "runtime/base/size.h"

/// Return the size for the upstream, or 0 if the sum overflows. Before a block with a large
/// alignment are up to `align` bytes, and the last word of these has the start of the memory.
static size_t get_outer_size(const memrt__adaptor_t *adaptor, size_t size, size_t align)
{
    if (align <= adaptor->options.amount) {
        return size;
    }
    size_t extra = align + sizeof(void *);
    return size > SIZE_MAX - extra ? 0 : size + extra;
}

static void *align_block(char *start, size_t align)
{
    uintptr_t least = (uintptr_t)start + sizeof(void *);
    char *ptr = start + sizeof(void *) + ((0 - least) & (align - 1));
    ((void **)(void *)ptr)[-1] = start;
    return ptr;
}

static void *alloc_aligned(const memrt__adaptor_t *adaptor, size_t size, size_t align, bool zeroed)
{
    size_t outer = get_outer_size(adaptor, size, align);
    if (outer == 0) {
        return NULL;
    }
    size_t honoured = memrt__size_min(align, adaptor->options.amount);
    void *start = memrt__allocator_alloc(&adaptor->upstream, outer, honoured, zeroed);
    return start == NULL || honoured == align ? start : align_block(start, align);
}

static void *aligning_alloc(void *ctx, size_t size, size_t align)
{
    return alloc_aligned(ctx, size, align, false);
}

static void *aligning_alloc_zeroed(void *ctx, size_t size, size_t align)
{
    return alloc_aligned(ctx, size, align, true);
}

static void aligning_free(void *ctx, void *ptr, size_t size, size_t align)
{
    const memrt__adaptor_t *adaptor = ctx;
    size_t honoured = memrt__size_min(align, adaptor->options.amount);
    void *start = honoured == align ? ptr : ((void **)ptr)[-1];
    memrt__allocator_free(&adaptor->upstream, start, get_outer_size(adaptor, size, align),
                          honoured);
}

/// The gap before the block may change with its address, so a block with a large alignment moves.
static void *aligning_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    const memrt__adaptor_t *adaptor = ctx;
    if (align <= adaptor->options.amount) {
        return memrt__allocator_realloc(&adaptor->upstream, ptr, old_size, new_size, align);
    }
    memrt_allocator_t self = {.ctx = ctx, .alloc = aligning_alloc, .free = aligning_free};
    return memrt__allocator_move(&self, &self, ptr, old_size, new_size, align);
}

const memrt__adaptor_functions_t memrt__aligning_functions = {
    "aligning", aligning_alloc, aligning_alloc_zeroed, aligning_realloc, aligning_free, NULL, NULL,
};
