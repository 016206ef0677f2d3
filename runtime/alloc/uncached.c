#include "runtime/alloc/allocator.h"
#include "runtime/base/size.h"

/// Uncached allocator: passes each request on and keeps no freed block. Requests of MEMRT__LARGE
/// bytes or more go to an allocator that maps pages, smaller requests to the C library's malloc.

/// Return the allocator for a block of `size` bytes. Only `ctx` and `size` decide, so a free or
/// resize of the block finds the allocator again. `ctx` points to the allocator for large blocks, a
/// mapped allocator with its own huge page mode. NULL: memrt__mapped_allocator.
static const memrt_allocator_t *choose_allocator(const void *ctx, size_t size)
{
    const memrt_allocator_t *large = ctx == NULL ? &memrt__mapped_allocator : ctx;
    return size >= MEMRT__LARGE ? large : &memrt__system_allocator;
}

static void *uncached_alloc(void *ctx, size_t size, size_t align)
{
    return memrt__allocator_alloc(choose_allocator(ctx, size), size, align, false);
}

static void *uncached_alloc_zeroed(void *ctx, size_t size, size_t align)
{
    return memrt__allocator_alloc(choose_allocator(ctx, size), size, align, true);
}

static void *uncached_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    const memrt_allocator_t *from = choose_allocator(ctx, old_size);
    const memrt_allocator_t *to = choose_allocator(ctx, new_size);
    if (from == to) {
        return memrt__allocator_realloc(from, ptr, old_size, new_size, align);
    }
    return memrt__allocator_move(from, to, ptr, old_size, new_size, align);
}

static int uncached_try_expand(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    const memrt_allocator_t *from = choose_allocator(ctx, old_size);
    return from == choose_allocator(ctx, new_size) &&
           memrt__allocator_try_expand(from, ptr, old_size, new_size, align);
}

/// The size of a small block stays below the size of large blocks, which are of another allocator.
static size_t limit_usable_size(size_t size, size_t usable)
{
    return size < MEMRT__LARGE ? memrt__size_min(usable, MEMRT__LARGE - 1) : usable;
}

static size_t uncached_usable_size(void *ctx, const void *ptr, size_t size, size_t align)
{
    const memrt_allocator_t *from = choose_allocator(ctx, size);
    return limit_usable_size(size, memrt__allocator_usable_size(from, ptr, size, align));
}

static size_t uncached_good_size(void *ctx, size_t size, size_t align)
{
    return memrt__allocator_good_size(choose_allocator(ctx, size), size, align);
}

static void uncached_free(void *ctx, void *ptr, size_t size, size_t align)
{
    memrt__allocator_free(choose_allocator(ctx, size), ptr, size, align);
}

const memrt_allocator_t memrt__uncached_allocator = {
    .struct_size = sizeof(memrt_allocator_t),
    .version = MEMRT_ALLOCATOR_VERSION,
    .name = "uncached",
    .alloc = uncached_alloc,
    .alloc_zeroed = uncached_alloc_zeroed,
    .realloc = uncached_realloc,
    .free = uncached_free,
    .try_expand = uncached_try_expand,
    .usable_size = uncached_usable_size,
    .good_size = uncached_good_size,
};
