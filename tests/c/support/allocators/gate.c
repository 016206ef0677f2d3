#include "support/allocators/gate.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "runtime/alloc/allocator.h"

typedef struct gate {
    memrt_allocator_t upstream;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool shut;      ///< under the lock
    size_t waiting; ///< under the lock
} gate_t;

static void *gate_alloc(void *ctx, size_t size, size_t align)
{
    gate_t *self = ctx;
    pthread_mutex_lock(&self->lock);
    self->waiting++;
    pthread_cond_broadcast(&self->changed);
    while (self->shut) {
        pthread_cond_wait(&self->changed, &self->lock);
    }
    self->waiting--;
    pthread_mutex_unlock(&self->lock);
    return memrt__allocator_alloc(&self->upstream, size, align, false);
}

static void gate_free(void *ctx, void *ptr, size_t size, size_t align)
{
    gate_t *self = ctx;
    memrt__allocator_free(&self->upstream, ptr, size, align);
}

static void gate_destroy(void *ctx)
{
    gate_t *self = ctx;
    memrt__allocator_destroy(&self->upstream);
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

memrt_status_t gate_new(const memrt_allocator_t *upstream, memrt_allocator_t *out)
{
    gate_t *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return MEMRT_ENOMEM;
    }
    self->upstream = *upstream;
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->changed, NULL);
    *out = (memrt_allocator_t){
        .struct_size = sizeof(*out),
        .version = MEMRT_ALLOCATOR_VERSION,
        .name = "gate",
        .ctx = self,
        .alloc = gate_alloc,
        .free = gate_free,
        .destroy = gate_destroy,
    };
    return MEMRT_OK;
}

static void set_shut(const memrt_allocator_t *gate, bool shut)
{
    gate_t *self = gate->ctx;
    pthread_mutex_lock(&self->lock);
    self->shut = shut;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

void gate_shut(const memrt_allocator_t *gate)
{
    set_shut(gate, true);
}

void gate_open(const memrt_allocator_t *gate)
{
    set_shut(gate, false);
}

void gate_wait_for(const memrt_allocator_t *gate, size_t count)
{
    gate_t *self = gate->ctx;
    pthread_mutex_lock(&self->lock);
    while (self->waiting < count) {
        pthread_cond_wait(&self->changed, &self->lock);
    }
    pthread_mutex_unlock(&self->lock);
}
