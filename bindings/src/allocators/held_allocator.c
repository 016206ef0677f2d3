#include "allocators/held_allocator.h"

#include <stdlib.h>

#include "core/owner.h"

typedef struct held {
    memrt_allocator_t table;
    memrt_owner_t *keeper; ///< drops the reference on any thread
} held_t;

static void *held_alloc(void *ctx, size_t size, size_t align)
{
    const memrt_allocator_t *table = &((held_t *)ctx)->table;
    return table->alloc(table->ctx, size, align);
}

static void *held_alloc_zeroed(void *ctx, size_t size, size_t align)
{
    const memrt_allocator_t *table = &((held_t *)ctx)->table;
    return table->alloc_zeroed(table->ctx, size, align);
}

static void *held_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    const memrt_allocator_t *table = &((held_t *)ctx)->table;
    return table->realloc(table->ctx, ptr, old_size, new_size, align);
}

static void held_free(void *ctx, void *ptr, size_t size, size_t align)
{
    const memrt_allocator_t *table = &((held_t *)ctx)->table;
    table->free(table->ctx, ptr, size, align);
}

static size_t held_release_unused(void *ctx)
{
    const memrt_allocator_t *table = &((held_t *)ctx)->table;
    return table->release_unused(table->ctx);
}

static void held_usage(void *ctx, memrt_allocator_usage_t *out)
{
    const memrt_allocator_t *table = &((held_t *)ctx)->table;
    table->usage(table->ctx, out);
}

static int held_try_expand(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    const memrt_allocator_t *table = &((held_t *)ctx)->table;
    return table->try_expand(table->ctx, ptr, old_size, new_size, align);
}

static size_t held_usable_size(void *ctx, const void *ptr, size_t size, size_t align)
{
    const memrt_allocator_t *table = &((held_t *)ctx)->table;
    return table->usable_size(table->ctx, ptr, size, align);
}

static size_t held_good_size(void *ctx, size_t size, size_t align)
{
    const memrt_allocator_t *table = &((held_t *)ctx)->table;
    return table->good_size(table->ctx, size, align);
}

static void held_destroy(void *ctx)
{
    held_t *held = ctx;
    if (held->table.destroy != NULL) {
        held->table.destroy(held->table.ctx);
    }
    memrt__owner_dtor(NULL, 0, held->keeper);
    free(held);
}

int memrt__held_allocator_new(const memrt_allocator_t *table, PyObject *keeper,
                              memrt_allocator_t *out)
{
    memrt_owner_t *owner = memrt__owner_new(keeper, NULL, 0, 0);
    held_t *held = owner != NULL ? malloc(sizeof(*held)) : NULL;
    if (held == NULL && owner != NULL) {
        memrt__owner_discard(owner);
        PyErr_NoMemory();
    }
    if (held == NULL) {
        return -1;
    }
    *held = (held_t){*table, owner};
    *out = (memrt_allocator_t){
        .struct_size = sizeof(*out),
        .version = MEMRT_ALLOCATOR_VERSION,
        .name = "held",
        .ctx = held,
        .alloc = held_alloc,
        .alloc_zeroed = table->alloc_zeroed != NULL ? held_alloc_zeroed : NULL,
        .realloc = table->realloc != NULL ? held_realloc : NULL,
        .free = held_free,
        .release_unused = table->release_unused != NULL ? held_release_unused : NULL,
        .usage = table->usage != NULL ? held_usage : NULL,
        .destroy = held_destroy,
        .try_expand = table->try_expand != NULL ? held_try_expand : NULL,
        .usable_size = table->usable_size != NULL ? held_usable_size : NULL,
        .good_size = table->good_size != NULL ? held_good_size : NULL,
    };
    return 0;
}
