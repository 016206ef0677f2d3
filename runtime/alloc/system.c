#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/alloc/allocator.h"
#include "runtime/base/shield.h"

/// System allocator: the C library's malloc, with the requested alignment.

/// Alignment that malloc guarantees.
#define MALLOC_ALIGN (_Alignof(max_align_t))

static void *system_alloc(void *ctx, size_t size, size_t align)
{
    MEMRT__KEEP_ERRNO;
    (void)ctx;
    if (align <= MALLOC_ALIGN) {
        return malloc(size);
    }
    void *ptr;
    return posix_memalign(&ptr, align, size) == 0 ? ptr : NULL;
}

static void *system_alloc_zeroed(void *ctx, size_t size, size_t align)
{
    MEMRT__KEEP_ERRNO;
    if (align <= MALLOC_ALIGN) {
        return calloc(1, size);
    }
    void *ptr = system_alloc(ctx, size, align);
    if (ptr != NULL) {
        memset(ptr, 0, size);
    }
    return ptr;
}

/// malloc rounds sizes up. realloc() would move a block that does not fit, so only the rounding is
/// used.
static int system_try_expand(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    (void)ctx;
    (void)old_size;
    (void)align;
    return new_size <= malloc_usable_size(ptr);
}

static size_t system_usable_size(void *ctx, const void *ptr, size_t size, size_t align)
{
    (void)ctx;
    (void)size;
    (void)align;
    return malloc_usable_size((void *)(uintptr_t)ptr);
}

static void *system_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    MEMRT__KEEP_ERRNO;
    (void)ctx;
    if (align <= MALLOC_ALIGN) {
        return realloc(ptr, new_size);
    }
    if (new_size > old_size && system_try_expand(ctx, ptr, old_size, new_size, align)) {
        return ptr;
    }
    /* realloc() loses the alignment when it moves a block. */
    return memrt__allocator_move(&memrt__system_allocator, &memrt__system_allocator, ptr, old_size,
                                 new_size, align);
}

static void system_free(void *ctx, void *ptr, size_t size, size_t align)
{
    MEMRT__KEEP_ERRNO;
    (void)ctx;
    (void)size;
    (void)align;
    free(ptr);
}

const memrt_allocator_t memrt__system_allocator = {
    .struct_size = sizeof(memrt_allocator_t),
    .version = MEMRT_ALLOCATOR_VERSION,
    .name = "system",
    .alloc = system_alloc,
    .alloc_zeroed = system_alloc_zeroed,
    .realloc = system_realloc,
    .free = system_free,
    .try_expand = system_try_expand,
    .usable_size = system_usable_size,
};
