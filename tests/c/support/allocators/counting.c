#include "support/allocators/counting.h"

#include <stdlib.h>

#include "runtime/alloc/allocator.h"
#include "runtime/base/atomics.h"

typedef struct counting {
    memrt_allocator_t upstream;
    counts_t counts; ///< any thread, relaxed adds
    counts_t *last;  ///< receives the counts at destruction, or NULL
} counting_t;

static void *counting_alloc_either(counting_t *self, size_t size, size_t align, bool zeroed)
{
    void *ptr = memrt__allocator_alloc(&self->upstream, size, align, zeroed);
    if (ptr != NULL) {
        memrt__fetch_add_relaxed(&self->counts.allocs, 1);
        memrt__fetch_add_relaxed(&self->counts.bytes, size);
    }
    return ptr;
}

static void *counting_alloc(void *ctx, size_t size, size_t align)
{
    return counting_alloc_either(ctx, size, align, false);
}

static void *counting_alloc_zeroed(void *ctx, size_t size, size_t align)
{
    return counting_alloc_either(ctx, size, align, true);
}

static void *counting_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    counting_t *self = ctx;
    void *moved = memrt__allocator_realloc(&self->upstream, ptr, old_size, new_size, align);
    if (moved != NULL) {
        memrt__fetch_add_relaxed(&self->counts.reallocs, 1);
        memrt__fetch_add_relaxed(&self->counts.bytes, new_size - old_size);
    }
    return moved;
}

static void counting_free(void *ctx, void *ptr, size_t size, size_t align)
{
    counting_t *self = ctx;
    memrt__fetch_add_relaxed(&self->counts.frees, 1);
    memrt__fetch_add_relaxed(&self->counts.bytes, (size_t)0 - size);
    memrt__allocator_free(&self->upstream, ptr, size, align);
}

static void counting_destroy(void *ctx)
{
    counting_t *self = ctx;
    self->counts.destroys++;
    if (self->last != NULL) {
        *self->last = self->counts;
    }
    memrt__allocator_destroy(&self->upstream);
    free(self);
}

memrt_status_t counting_new(const memrt_allocator_t *upstream, memrt_allocator_t *out)
{
    counting_t *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return MEMRT_ENOMEM;
    }
    self->upstream = *upstream;
    *out = (memrt_allocator_t){
        .struct_size = sizeof(*out),
        .version = MEMRT_ALLOCATOR_VERSION,
        .name = "counting",
        .ctx = self,
        .alloc = counting_alloc,
        .alloc_zeroed = counting_alloc_zeroed,
        .realloc = counting_realloc,
        .free = counting_free,
        .destroy = counting_destroy,
    };
    return MEMRT_OK;
}

counts_t counting_read(const memrt_allocator_t *counting)
{
    const counting_t *self = counting->ctx;
    return self->counts;
}

void counting_at_destroy(const memrt_allocator_t *counting, counts_t *last)
{
    counting_t *self = counting->ctx;
    self->last = last;
}
