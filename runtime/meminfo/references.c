#include "runtime/meminfo/references.h"

#include "runtime/base/check.h"
#include "runtime/meminfo/block.h"

/// Maximum number of nested destructors; further destructors are deferred. Each destructor may use
/// as much stack as the destruction of a Python object.
#define DEEPEST 32

/// Not 0 after memrt__dtor_shutdown(). Relaxed order suffices: a destructor that still runs at that
/// moment does no harm, and neither does a skipped destructor.
static size_t shut_down;

void memrt__dtor_shutdown(void)
{
    memrt__store_relaxed(&shut_down, 1);
}

/// Release the data block of a resizable MemInfo. The data block is never tiny.
static void release_data_block(memrt_meminfo_t *mi)
{
    void *data = mi->data;
    MEMRT__ASSERT(mi->kind == MEMRT_KIND_RESIZABLE);
    memrt__block_set_data(mi, NULL, 0);
    if (data != NULL) {
        memrt__meminfo_release(memrt__block_of(data));
    }
}

static void destroy_meminfo(memrt_meminfo_t *mi)
{
    MEMRT__ASSERT(mi->kind >= MEMRT_KIND_INLINE && mi->kind <= MEMRT_KIND_BLOCK);
    if (mi->dtor != NULL && memrt__load_relaxed(&shut_down) == 0) {
        mi->dtor(mi->data, mi->size, mi->dtor_info);
        mi->dtor = NULL;
    }
    if (mi->kind == MEMRT_KIND_RESIZABLE) {
        release_data_block(mi);
    }
    if (!memrt__block_delete_fast(mi)) {
        memrt__block_delete(mi);
    }
}

static memrt_meminfo_t *take_deferred_meminfo(memrt__thread_t *self)
{
    memrt_meminfo_t *mi = self->put_off;
    MEMRT__ASSERT(self == memrt__self && mi != NULL);
    size_t *link = memrt__put_off_link(mi);
    memrt__store_release((size_t *)&self->put_off, *link);
    memrt__store_relaxed(link, mi->kind == MEMRT_KIND_INLINE ? (size_t)(mi + 1) : 0);
    return mi;
}

static void destroy_nested_meminfo(memrt__thread_t *self, memrt_meminfo_t *mi)
{
    MEMRT__ASSERT(self->destructors < DEEPEST);
    self->destructors++;
    destroy_meminfo(mi);
    self->destructors--;
}

static void destroy_deferred_meminfos(memrt__thread_t *self)
{
    while (self->put_off != NULL) {
        destroy_nested_meminfo(self, take_deferred_meminfo(self));
    }
}

/// Run the deferred destructors of a thread that ends. The thread record calls this function.
static void destroy_own_deferred(void)
{
    destroy_deferred_meminfos(memrt__self);
}

/// Defer the destructor of `mi`. The count is 0, so a word of the header can hold the link of the
/// list. The release stores keep the list consistent for a child forked at any moment.
static void defer_meminfo(memrt__thread_t *self, memrt_meminfo_t *mi)
{
    MEMRT__ASSERT(memrt__load_relaxed(&mi->refct) == 0 && self->destructors != 0);
    memrt__store_relaxed(memrt__put_off_link(mi), (size_t)self->put_off);
    self->end_put_off = destroy_own_deferred;
    memrt__store_release((size_t *)&self->put_off, (size_t)mi);
}

static void destroy_orphaned_meminfos(memrt__thread_t *self)
{
    if (MEMRT__UNLIKELY(memrt__load_relaxed(&memrt__thread_left) != 0)) {
        memrt__thread_adopt_left(self);
        destroy_deferred_meminfos(self);
    }
}

void memrt__dtor_call(memrt_meminfo_t *mi)
{
    memrt__thread_t *self = mi->dtor != NULL ? memrt__thread_self() : NULL;
    if (self == NULL) {
        destroy_meminfo(mi);
        return;
    }
    if (self->destructors >= DEEPEST) {
        defer_meminfo(self, mi);
        return;
    }
    destroy_nested_meminfo(self, mi);
    if (self->destructors == 0) {
        destroy_deferred_meminfos(self);
        destroy_orphaned_meminfos(self);
    }
}

/// Release the last reference to a MemInfo with a destructor, or to a block that needs the slow
/// path. No thread can find a block outside of the live set, so a plain store of 0 replaces the
/// atomic decrement.
MEMRT__APART static void release_last_slow(memrt_meminfo_t *mi)
{
    if ((memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_LISTED) == 0) {
        memrt__store_relaxed(&mi->refct, 0);
        memrt__dtor_call(mi);
    } else if (memrt__fetch_sub1_release(&mi->refct) == 1) {
        (void)memrt__load_acquire(&mi->refct);
        memrt__dtor_call(mi);
    }
}

void memrt__meminfo_release_last(memrt_meminfo_t *mi)
{
    if (MEMRT__UNLIKELY(!memrt__block_delete_fast(mi))) {
        release_last_slow(mi);
    }
}

void memrt__meminfo_refuse_release(const memrt_meminfo_t *mi)
{
    memrt__abort("release of MemInfo %p, or block_free or block_realloc of %p: the count of "
                 "references must be at least 1, got 0: the buffer was released more often than "
                 "acquired, or freed twice" MEMRT__CHECK_HINT,
                 (const void *)mi, (const void *)(mi + 1));
}
