#include "runtime/meminfo/references.h"

#include "runtime/base/check.h"
#include "runtime/meminfo/access/freeze.h"
#include "runtime/meminfo/block.h"
#include "runtime/os/lock.h"

/// Maximum number of nested destructors; further destructors are deferred. Each destructor may use
/// as much stack as the destruction of a Python object.
#define DEEPEST 32

/// Address of the first MemInfo whose deferred destructor lost its thread, 0 for none. The next
/// thread that runs a destructor also runs the destructors of this list. Relaxed; written under the
/// lock of rank THREADS.
static size_t orphaned;

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

/// A function of its own, so that the frames of nested destructors stay small.
MEMRT__APART static bool delete_fast(memrt_meminfo_t *mi)
{
    return memrt__block_delete_fast(mi);
}

/// Abort: a block that was handed out by its data pointer never has a destructor.
MEMRT__COLD _Noreturn static void refuse_dtor(const memrt_meminfo_t *mi)
{
    memrt__abort("release of %p: the header of the block was overwritten, probably by a write past "
                 "the end of the block before" MEMRT__CHECK_HINT,
                 mi->data);
}

static void destroy_meminfo(memrt_meminfo_t *mi)
{
    MEMRT__ASSERT(mi->kind >= MEMRT_KIND_INLINE && mi->kind <= MEMRT_KIND_BLOCK);
    if (mi->dtor != NULL) {
        if (MEMRT__UNLIKELY(mi->kind == MEMRT_KIND_BLOCK)) {
            refuse_dtor(mi);
        }
        if (!memrt__freeze_end(mi)) {
            return;
        }
        if (memrt__load_relaxed(&shut_down) == 0) {
            mi->dtor(mi->data, mi->size, mi->dtor_info);
        }
        mi->dtor = NULL;
    }
    if (mi->kind == MEMRT_KIND_RESIZABLE) {
        release_data_block(mi);
    }
    if (!delete_fast(mi)) {
        memrt__block_delete(mi);
    }
}

/// Word of a deferred MemInfo that links the list of deferred MemInfos. The count of a deferred
/// MemInfo is 0 and its destructor has not run, so the word must be restorable: the data of an
/// inline MemInfo follows the header, and only inline MemInfos have an external allocator.
typedef union deferred_link {
    size_t next;                                    ///< deferred: address of the next, or 0
    void *data;                                     ///< of an inline MemInfo, otherwise
    memrt_external_allocator_t *external_allocator; ///< of other kinds, otherwise: NULL
} deferred_link_t;

static deferred_link_t *get_link(memrt_meminfo_t *mi)
{
    return mi->kind == MEMRT_KIND_INLINE ? (deferred_link_t *)&mi->data
                                         : (deferred_link_t *)&mi->external_allocator;
}

static memrt_meminfo_t *take_deferred_meminfo(memrt__thread_t *self)
{
    memrt_meminfo_t *mi = self->dtors.deferred;
    MEMRT__ASSERT(self == memrt__self && mi != NULL);
    deferred_link_t *link = get_link(mi);
    memrt__store_release((size_t *)&self->dtors.deferred, link->next);
    memrt__store_relaxed(&link->next, mi->kind == MEMRT_KIND_INLINE ? (size_t)(mi + 1) : 0);
    return mi;
}

static void destroy_nested_meminfo(memrt__thread_t *self, memrt_meminfo_t *mi)
{
    MEMRT__ASSERT(self->dtors.depth < DEEPEST);
    self->dtors.depth++;
    destroy_meminfo(mi);
    self->dtors.depth--;
}

static void destroy_deferred_meminfos(memrt__thread_t *self)
{
    while (self->dtors.deferred != NULL) {
        destroy_nested_meminfo(self, take_deferred_meminfo(self));
    }
}

/// Run the deferred destructors of an ending thread, left over if the thread ended inside another
/// destructor.
static void end_deferred(memrt__thread_t *self)
{
    self->dtors.depth = 0;
    destroy_deferred_meminfos(self);
}

/// Defer the destructor of `mi`. The release stores keep the list consistent for a child forked at
/// any moment.
static void defer_meminfo(memrt__thread_t *self, memrt_meminfo_t *mi)
{
    MEMRT__ASSERT(memrt__load_relaxed(&mi->refct) == 0 && self->dtors.depth != 0);
    memrt__store_relaxed(&get_link(mi)->next, (size_t)self->dtors.deferred);
    memrt__store_release((size_t *)&self->dtors.deferred, (size_t)mi);
}

/// Move the deferred destructors of a dead thread to `orphaned`. Destructors that the thread ended
/// inside of do not resume. Under the lock of rank THREADS.
static void hand_over_deferred(memrt__thread_t *thread)
{
    size_t *end = (size_t *)&thread->dtors.deferred;
    while (*end != 0) {
        end = &get_link((memrt_meminfo_t *)*end)->next;
    }
    memrt__store_relaxed(end, memrt__load_relaxed(&orphaned));
    memrt__store_relaxed(&orphaned, (size_t)thread->dtors.deferred);
    thread->dtors = (memrt__dtor_slot_t){0, NULL};
}

/// Move the MemInfos of `orphaned` to the calling thread, which has no deferred MemInfos.
MEMRT__COLD static void adopt_orphaned(memrt__thread_t *self)
{
    if (!memrt__lock_or_fork(MEMRT__RANK_THREADS)) {
        return;
    }
    MEMRT__ASSERT(self == memrt__self && self->dtors.deferred == NULL);
    self->dtors.deferred = (memrt_meminfo_t *)memrt__load_relaxed(&orphaned);
    memrt__store_relaxed(&orphaned, 0);
    memrt__unlock(MEMRT__RANK_THREADS);
}

static void destroy_orphaned_meminfos(memrt__thread_t *self)
{
    if (MEMRT__UNLIKELY(memrt__load_relaxed(&orphaned) != 0)) {
        adopt_orphaned(self);
        destroy_deferred_meminfos(self);
    }
}

void memrt__dtor_start(void)
{
    static const memrt__thread_module_t module = {
        {[MEMRT__THREAD_ENDING] = end_deferred, [MEMRT__THREAD_RESET] = hand_over_deferred}};
    memrt__thread_add_module(&module);
}

void memrt__dtor_call(memrt_meminfo_t *mi)
{
    memrt__thread_t *self = mi->dtor != NULL ? memrt__thread_self() : NULL;
    if (self == NULL) {
        destroy_meminfo(mi);
        return;
    }
    if (self->dtors.depth >= DEEPEST) {
        defer_meminfo(self, mi);
        return;
    }
    destroy_nested_meminfo(self, mi);
    if (self->dtors.depth == 0) {
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

/// Release a reference to a MemInfo that memrt__meminfo_release() did not free by its home.
MEMRT__APART static void release_slow(memrt_meminfo_t *mi)
{
    size_t count = memrt__load_acquire(&mi->refct);
    if (count == 0) {
        memrt__meminfo_refuse_release(mi);
    }
    if (count != 1) {
        if (memrt__fetch_sub1_release(&mi->refct) == 1) {
            (void)memrt__load_acquire(&mi->refct);
            memrt__dtor_call(mi);
        }
    } else if (MEMRT__UNLIKELY(!delete_fast(mi))) {
        release_last_slow(mi);
    }
}

/// Free a MemInfo without a destructor if `home` is set for its account, and the bin has room.
/// Returns whether the MemInfo was freed.
static MEMRT__INLINE bool delete_at_home(memrt__thread_t *self, const memrt__home_t *home,
                                         memrt_meminfo_t *mi)
{
    return memrt__state_equals(mi, memrt__home_state(home, MEMRT_KIND_INLINE)) &&
           mi->dtor == NULL && memrt__block_delete_at(self, home->shard, mi, MEMRT_KIND_INLINE);
}

/// Free a MemInfo of the default policy, or of one of the policies that the thread used last. Ends
/// before the slow path begins, so that the frames of nested destructors stay small.
static MEMRT__INLINE_OPTIMIZED bool delete_at_homes(memrt_meminfo_t *mi)
{
    memrt__thread_t *self = memrt__self;
    return MEMRT__LIKELY(delete_at_home(self, &self->homes[MEMRT__DEFAULT_HOME], mi)) ||
           delete_at_home(self, &self->homes[0], mi) || delete_at_home(self, &self->homes[1], mi);
}

void memrt__meminfo_release(memrt_meminfo_t *mi)
{
    if (MEMRT__UNLIKELY(!memrt__word_equals_acquire(&mi->refct, 1))) {
        release_slow(mi);
    } else if (MEMRT__UNLIKELY(!delete_at_homes(mi))) {
        release_slow(mi);
    }
}

/// Return whether a block has one reference, and no handle from which a thread gets another.
static bool has_one_reference(const memrt_meminfo_t *mi)
{
    return memrt__load_acquire(&mi->refct) == 1 &&
           (memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_WEAK) == 0;
}

int memrt__meminfo_try_unique(const memrt_meminfo_t *mi)
{
    return has_one_reference(mi) && (mi->kind != MEMRT_KIND_RESIZABLE || mi->data == NULL ||
                                     has_one_reference(memrt__block_of(mi->data)));
}

void memrt__meminfo_destroy(memrt_meminfo_t *mi)
{
    if (MEMRT__UNLIKELY(!delete_at_homes(mi))) {
        memrt__dtor_call(mi);
    }
}

void memrt__meminfo_refuse_release(const memrt_meminfo_t *mi)
{
    memrt__abort("release of MemInfo %p, or block_free or block_realloc of %p: the count of "
                 "references must be at least 1, got 0: the buffer was released more often than "
                 "acquired, or freed twice" MEMRT__CHECK_HINT,
                 (const void *)mi, (const void *)(mi + 1));
}
