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

static size_t get_honoured(const memrt__adaptor_t *adaptor, size_t align)
{
    return memrt__size_min(align, adaptor->options.amount);
}

/// Return the start of the upstream's memory.
static void *get_start(const memrt__adaptor_t *adaptor, const void *ptr, size_t align)
{
    return align <= adaptor->options.amount ? (void *)(uintptr_t)ptr : ((void *const *)ptr)[-1];
}

static void aligning_free(void *ctx, void *ptr, size_t size, size_t align)
{
    const memrt__adaptor_t *adaptor = ctx;
    memrt__allocator_free(&adaptor->upstream, get_start(adaptor, ptr, align),
                          get_outer_size(adaptor, size, align), get_honoured(adaptor, align));
}

static int aligning_try_expand(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    const memrt__adaptor_t *adaptor = ctx;
    size_t outer = get_outer_size(adaptor, new_size, align);
    return outer != 0 &&
           memrt__allocator_try_expand(&adaptor->upstream, get_start(adaptor, ptr, align),
                                       get_outer_size(adaptor, old_size, align), outer,
                                       get_honoured(adaptor, align));
}

static size_t aligning_usable_size(void *ctx, const void *ptr, size_t size, size_t align)
{
    const memrt__adaptor_t *adaptor = ctx;
    size_t outer = get_outer_size(adaptor, size, align);
    return size - outer +
           memrt__allocator_usable_size(&adaptor->upstream, get_start(adaptor, ptr, align), outer,
                                        get_honoured(adaptor, align));
}

static size_t aligning_good_size(void *ctx, size_t size, size_t align)
{
    const memrt__adaptor_t *adaptor = ctx;
    size_t outer = get_outer_size(adaptor, size, align);
    return outer == 0 ? size
                      : size - outer +
                            memrt__allocator_good_size(&adaptor->upstream, outer,
                                                       get_honoured(adaptor, align));
}

/// The gap before the block may change with its address, so a block with a large alignment moves.
static void *aligning_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    const memrt__adaptor_t *adaptor = ctx;
    if (align <= adaptor->options.amount) {
        return memrt__allocator_realloc(&adaptor->upstream, ptr, old_size, new_size, align);
    }
    if (new_size > old_size && aligning_try_expand(ctx, ptr, old_size, new_size, align)) {
        return ptr;
    }
    memrt_allocator_t self = {.ctx = ctx, .alloc = aligning_alloc, .free = aligning_free};
    return memrt__allocator_move(&self, &self, ptr, old_size, new_size, align);
}

const memrt__adaptor_functions_t memrt__aligning_functions = {
    .name = "aligning",
    .alloc = aligning_alloc,
    .alloc_zeroed = aligning_alloc_zeroed,
    .realloc = aligning_realloc,
    .free = aligning_free,
    .try_expand = aligning_try_expand,
    .usable_size = aligning_usable_size,
    .good_size = aligning_good_size,
};
