/// Retrying adaptor: calls a function when the upstream refuses, and repeats the request.

#include "runtime/alloc/adaptors/adaptor_functions.h"

static bool may_repeat(const memrt__adaptor_t *adaptor, size_t size, size_t align)
{
    return adaptor->options.failed(size, align, adaptor->options.context) != 0;
}

static void *alloc_repeatedly(const memrt__adaptor_t *adaptor, size_t size, size_t align,
                              bool zeroed)
{
    void *ptr;
    do {
        ptr = memrt__allocator_alloc(&adaptor->upstream, size, align, zeroed);
    } while (ptr == NULL && may_repeat(adaptor, size, align));
    return ptr;
}

static void *retrying_alloc(void *ctx, size_t size, size_t align)
{
    return alloc_repeatedly(ctx, size, align, false);
}

static void *retrying_alloc_zeroed(void *ctx, size_t size, size_t align)
{
    return alloc_repeatedly(ctx, size, align, true);
}

static void *retrying_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    const memrt__adaptor_t *adaptor = ctx;
    void *moved;
    do {
        moved = memrt__allocator_realloc(&adaptor->upstream, ptr, old_size, new_size, align);
    } while (moved == NULL && may_repeat(adaptor, new_size, align));
    return moved;
}

/// Growth without room is not repeated, because the caller allocates or resizes next.
static int retrying_try_expand(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    return memrt__allocator_try_expand(&((memrt__adaptor_t *)ctx)->upstream, ptr, old_size,
                                       new_size, align);
}

const memrt__adaptor_functions_t memrt__retrying_functions = {
    .name = "retrying",
    .alloc = retrying_alloc,
    .alloc_zeroed = retrying_alloc_zeroed,
    .realloc = retrying_realloc,
    .try_expand = retrying_try_expand,
};
