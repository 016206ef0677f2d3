#include "runtime/alloc/allocator.h"

/// The context is the allocator of large blocks; NULL: the mapped one.
static const memrt_allocator_t *by_size(const void *ctx, size_t size)
{
    const memrt_allocator_t *large = ctx == NULL ? &memrt__mapped_allocator : ctx;
    return size >= MEMRT__LARGE ? large : &memrt__system_allocator;
}

static void *plain_alloc(void *ctx, size_t size, size_t align)
{
    return memrt__allocator_alloc(by_size(ctx, size), size, align, false);
}

static void *plain_alloc_zeroed(void *ctx, size_t size, size_t align)
{
    return memrt__allocator_alloc(by_size(ctx, size), size, align, true);
}

static void *plain_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    const memrt_allocator_t *from = by_size(ctx, old_size);
    const memrt_allocator_t *to = by_size(ctx, new_size);
    if (from == to) {
        return memrt__allocator_realloc(from, ptr, old_size, new_size, align);
    }
    return memrt__allocator_move(from, to, ptr, old_size, new_size, align);
}

static void plain_free(void *ctx, void *ptr, size_t size, size_t align)
{
    memrt__allocator_free(by_size(ctx, size), ptr, size, align);
    if (size >= MEMRT__LARGE) {
        memrt__system_learn(size);
    }
}

const memrt_allocator_t memrt__plain_allocator = {
    .struct_size = sizeof(memrt_allocator_t),
    .version = MEMRT_ALLOCATOR_VERSION,
    .name = "plain",
    .alloc = plain_alloc,
    .alloc_zeroed = plain_alloc_zeroed,
    .realloc = plain_realloc,
    .free = plain_free,
};
