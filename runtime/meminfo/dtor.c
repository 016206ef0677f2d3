#include "runtime/meminfo/dtor.h"

#include "runtime/base/atomics.h"
#include "runtime/meminfo/block.h"
#include "runtime/meminfo/resizable.h"

/// Destructors that run one inside the other before the next has to wait. Each may take as much of
/// the stack as destroying a Python object does.
#define DEEPEST 32

/// Relaxed: set at the end of the process; a destructor more or less at that moment is as well.
static size_t shut_down;

void memrt__dtor_shutdown(void)
{
    memrt__store_relaxed(&shut_down, 1);
}

static void end(memrt_meminfo_t *mi)
{
    if (mi->dtor != NULL && memrt__load_relaxed(&shut_down) == 0) {
        mi->dtor(mi->data, mi->size, mi->dtor_info);
        mi->dtor = NULL;
    }
    if (mi->kind == MEMRT_KIND_RESIZABLE) {
        memrt__resizable_free(mi, mi->data);
    }
    if (!memrt__block_delete_quick(mi)) {
        memrt__block_delete(mi);
    }
}

/// Nobody holds it any more, and its external allocator is none: that word links it.
static void put_off(memrt__thread_t *self, memrt_meminfo_t *mi)
{
    mi->external_allocator = (void *)self->put_off;
    self->put_off = mi;
}

static memrt_meminfo_t *take_put_off(memrt__thread_t *self)
{
    memrt_meminfo_t *mi = self->put_off;
    self->put_off = (void *)mi->external_allocator;
    mi->external_allocator = NULL;
    return mi;
}

static void end_inside(memrt__thread_t *self, memrt_meminfo_t *mi)
{
    self->destructors++;
    end(mi);
    self->destructors--;
}

void memrt__dtor_call(memrt_meminfo_t *mi)
{
    memrt__thread_t *self = mi->dtor != NULL ? memrt__thread_self() : NULL;
    if (self == NULL) {
        end(mi);
        return;
    }
    if (self->destructors >= DEEPEST && mi->external_allocator == NULL) {
        put_off(self, mi);
        return;
    }
    end_inside(self, mi);
    while (self->destructors == 0 && self->put_off != NULL) {
        end_inside(self, take_put_off(self));
    }
}
