#include "support/allocators/failing.h"

#include <stdlib.h>

#include "runtime/alloc/allocator.h"
#include "runtime/base/atomics.h"

typedef struct failing {
    memrt_allocator_t upstream;
    size_t left; ///< countdown to the refused request, 0: none; any thread, relaxed
} failing_t;

static bool is_failure_due(failing_t *self)
{
    size_t left = memrt__load_relaxed(&self->left);
    while (left != 0 && !memrt__cas_relaxed(&self->left, left, left - 1)) {
        left = memrt__load_relaxed(&self->left);
    }
    return left == 1;
}

static void *failing_alloc(void *ctx, size_t size, size_t align)
{
    failing_t *self = ctx;
    return is_failure_due(self) ? NULL
                                : memrt__allocator_alloc(&self->upstream, size, align, false);
}

static void *failing_alloc_zeroed(void *ctx, size_t size, size_t align)
{
    failing_t *self = ctx;
    return is_failure_due(self) ? NULL : memrt__allocator_alloc(&self->upstream, size, align, true);
}

static void *failing_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    failing_t *self = ctx;
    return is_failure_due(self)
               ? NULL
               : memrt__allocator_realloc(&self->upstream, ptr, old_size, new_size, align);
}

static void failing_free(void *ctx, void *ptr, size_t size, size_t align)
{
    failing_t *self = ctx;
    memrt__allocator_free(&self->upstream, ptr, size, align);
}

static void failing_destroy(void *ctx)
{
    failing_t *self = ctx;
    memrt__allocator_destroy(&self->upstream);
    free(self);
}

memrt_status_t failing_new(const memrt_allocator_t *upstream, memrt_allocator_t *out)
{
    failing_t *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return MEMRT_ENOMEM;
    }
    self->upstream = *upstream;
    *out = (memrt_allocator_t){
        .struct_size = sizeof(*out),
        .version = MEMRT_ALLOCATOR_VERSION,
        .name = "failing",
        .ctx = self,
        .alloc = failing_alloc,
        .alloc_zeroed = failing_alloc_zeroed,
        .realloc = failing_realloc,
        .free = failing_free,
        .destroy = failing_destroy,
    };
    return MEMRT_OK;
}

void failing_at(const memrt_allocator_t *failing, size_t nth)
{
    failing_t *self = failing->ctx;
    memrt__store_relaxed(&self->left, nth);
}
