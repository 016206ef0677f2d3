#include "support/allocators/hoarding.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/alloc/allocator.h"

#define RUBBISH 0x5A
#define KEPT_MAX 64

typedef struct kept {
    void *ptr; ///< NULL: free place
    size_t size, align;
} kept_t;

typedef struct hoarding {
    memrt_allocator_t upstream;
    pthread_mutex_t lock;
    kept_t kept[KEPT_MAX]; ///< under the lock
    size_t bytes;          ///< under the lock; sum of the sizes kept
} hoarding_t;

/// Return a place with a kept block of that size and alignment, or NULL. For a free place, `taken`
/// is false and both are 0.
static kept_t *find_kept_slot(hoarding_t *self, bool taken, size_t size, size_t align)
{
    for (size_t i = 0; i < KEPT_MAX; i++) {
        kept_t *place = &self->kept[i];
        if ((place->ptr != NULL) == taken && place->size == size && place->align == align) {
            return place;
        }
    }
    return NULL;
}

static void *hoarding_alloc(void *ctx, size_t size, size_t align)
{
    hoarding_t *self = ctx;
    void *ptr = NULL;
    pthread_mutex_lock(&self->lock);
    kept_t *place = find_kept_slot(self, true, size, align);
    if (place != NULL) {
        ptr = place->ptr;
        self->bytes -= size;
        *place = (kept_t){0};
    }
    pthread_mutex_unlock(&self->lock);
    return ptr != NULL ? ptr : memrt__allocator_alloc(&self->upstream, size, align, false);
}

static void hoarding_free(void *ctx, void *ptr, size_t size, size_t align)
{
    hoarding_t *self = ctx;
    memset(ptr, RUBBISH, size);
    pthread_mutex_lock(&self->lock);
    kept_t *place = find_kept_slot(self, false, 0, 0);
    if (place != NULL) {
        *place = (kept_t){ptr, size, align};
        self->bytes += size;
    }
    pthread_mutex_unlock(&self->lock);
    if (place == NULL) {
        memrt__allocator_free(&self->upstream, ptr, size, align);
    }
}

static size_t hoarding_release_unused(void *ctx)
{
    hoarding_t *self = ctx;
    pthread_mutex_lock(&self->lock);
    size_t bytes = self->bytes;
    for (size_t i = 0; i < KEPT_MAX; i++) {
        const kept_t *place = &self->kept[i];
        if (place->ptr != NULL) {
            memrt__allocator_free(&self->upstream, place->ptr, place->size, place->align);
        }
    }
    memset(self->kept, 0, sizeof(self->kept));
    self->bytes = 0;
    pthread_mutex_unlock(&self->lock);
    return bytes;
}

static void hoarding_usage(void *ctx, memrt_allocator_usage_t *out)
{
    hoarding_t *self = ctx;
    pthread_mutex_lock(&self->lock);
    out->cached = self->bytes;
    pthread_mutex_unlock(&self->lock);
}

static void hoarding_destroy(void *ctx)
{
    hoarding_t *self = ctx;
    hoarding_release_unused(self);
    memrt__allocator_destroy(&self->upstream);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

memrt_status_t hoarding_new(const memrt_allocator_t *upstream, memrt_allocator_t *out)
{
    hoarding_t *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return MEMRT_ENOMEM;
    }
    self->upstream = *upstream;
    pthread_mutex_init(&self->lock, NULL);
    *out = (memrt_allocator_t){
        .struct_size = sizeof(*out),
        .version = MEMRT_ALLOCATOR_VERSION,
        .name = "hoarding",
        .ctx = self,
        .alloc = hoarding_alloc,
        .free = hoarding_free,
        .release_unused = hoarding_release_unused,
        .usage = hoarding_usage,
        .destroy = hoarding_destroy,
    };
    return MEMRT_OK;
}
