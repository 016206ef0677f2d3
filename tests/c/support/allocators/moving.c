#include "support/allocators/moving.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/alloc/allocator.h"
#include "runtime/base/size.h"

#define SPOILED 0xA5

static void *moving_alloc(void *ctx, size_t size, size_t align)
{
    return memrt__allocator_alloc(ctx, size, align, false);
}

static void *moving_alloc_zeroed(void *ctx, size_t size, size_t align)
{
    return memrt__allocator_alloc(ctx, size, align, true);
}

static void moving_free(void *ctx, void *ptr, size_t size, size_t align)
{
    memrt__allocator_free(ctx, ptr, size, align);
}

static void *moving_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    void *moved = moving_alloc(ctx, new_size, align);
    if (moved != NULL) {
        memcpy(moved, ptr, memrt__size_min(old_size, new_size));
        memset(ptr, SPOILED, old_size);
        moving_free(ctx, ptr, old_size, align);
    }
    return moved;
}

static void moving_destroy(void *ctx)
{
    memrt__allocator_destroy(ctx);
    free(ctx);
}

memrt_status_t moving_new(const memrt_allocator_t *upstream, memrt_allocator_t *out)
{
    memrt_allocator_t *copy = malloc(sizeof(*copy));
    if (copy == NULL) {
        return MEMRT_ENOMEM;
    }
    *copy = *upstream;
    *out = (memrt_allocator_t){
        .struct_size = sizeof(*out),
        .version = MEMRT_ALLOCATOR_VERSION,
        .name = "moving",
        .ctx = copy,
        .alloc = moving_alloc,
        .alloc_zeroed = moving_alloc_zeroed,
        .realloc = moving_realloc,
        .free = moving_free,
        .destroy = moving_destroy,
    };
    return MEMRT_OK;
}
