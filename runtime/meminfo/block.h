#ifndef MEMRT_MEMINFO_BLOCK_H
#define MEMRT_MEMINFO_BLOCK_H

#include <stdbool.h>
#include <stddef.h>

#include <memrt/cuda.h>
#include <memrt/meminfo.h>

#include "runtime/alloc/cache.h"
#include "runtime/alloc/scope.h"
#include "runtime/base/atomics.h"
#include "runtime/base/failure.h"
#include "runtime/base/probes.h"
#include "runtime/debug/tracking.h"

/// A block: one piece of memory from an allocator, with a MemInfo header right before its data.
///
///     | padding, lead - 64 | header, 64 | data, size bytes |
///     ^ aligned                         ^ aligned
///
/// Blocks of MEMRT__LARGE bytes and more have their data on a page of its own. What stands here
/// makes and unmakes blocks and keeps their account; references and destructors are meminfo.h's
/// matter.

/// memrt_meminfo_t.flags.
#define MEMRT__FLAG_MEMINFO 1u                 ///< counted as a MemInfo
#define MEMRT__FLAG_LISTED 2u                  ///< in the live set
#define MEMRT__FLAG_WATCHED MEMRT_FLAG_WATCHED ///< its resizes and death go to the watcher
#define MEMRT__FLAG_READONLY 8u                ///< what `readonly` says
#define MEMRT__FLAG_PART 16u     ///< data of a resizable MemInfo, which is who to speak of
#define MEMRT__FLAG_QUICK 32u    ///< a block of its size's class in the pool, right at its header
#define MEMRT__FLAG_PROMOTED 64u ///< was a block before it counted as a MemInfo
#define MEMRT__FLAG_TINY 128u    ///< the MemInfo of a tiny block, a header without data

#define MEMRT__FLAG_HELD (1u << 16)          ///< was held under a name, and may be still
#define MEMRT__FLAG_DEVICE MEMRT_FLAG_DEVICE ///< nobody here may touch the data
#define MEMRT__FLAG_TRACED (1u << 18)        ///< its birth is in a trace

/// The class of a quick block stands in these bits of its flags.
#define MEMRT__FLAG_CLASS_AT 8
#define MEMRT__FLAG_CLASS (0xFFu << MEMRT__FLAG_CLASS_AT)

/// What a new block is to be.
typedef struct memrt__block_request {
    memrt_policy_t *policy; ///< held by the caller
    size_t size;            ///< bytes of data in the block
    size_t alignment;       ///< power of two; 0: the policy's
    memrt_kind_t kind;      ///< adopted and resizable blocks are a header without data
    bool zeroed;            ///< data all zero
    bool part;              ///< it is to be the data of a resizable MemInfo, nothing by itself
    size_t behind;          ///< bytes of the data that a header without data is to stand for
    memrt__birth_t birth;   ///< whether and how it is to be listed
    memrt_external_allocator_t *external; ///< NULL: the policy's allocator
} memrt__block_request_t;

/// New block, listed if it is to be. It is unborn: its count is 0, so that nobody who comes
/// upon it in the live set can hold it, and it is on no account, so that giving it up leaves no
/// trace. NULL: out of memory, counted as failed.
memrt_meminfo_t *memrt__block_new(const memrt__block_request_t *request);

/// New block with data, born, the short way: from the cache of `self`, the calling thread, counted
/// at home. The caller saw that nobody watches for more than that home stands for. NULL: that way
/// is not open for this request, memrt__block_new() knows another.
static MEMRT__INLINE memrt_meminfo_t *
memrt__block_new_quick(memrt__thread_t *self, memrt__home_t home, size_t size, memrt_kind_t kind);

/// The same for a policy that is memrt__policy_here(), whoever watches.
static MEMRT__INLINE memrt_meminfo_t *memrt__block_new_plain(const memrt_policy_t *policy,
                                                             size_t size, memrt_kind_t kind);

/// The same for a header without data, for adopted and resizable MemInfos.
static inline memrt_meminfo_t *memrt__header_new_quick(memrt_policy_t *policy, memrt_kind_t kind);

/// Up to this many bytes are cleared; above, the allocator may have some that are zero already.
#define MEMRT__QUICK_ZERO ((size_t)16 << 10)

/// Take an unshared block off the books and give its memory back the short way. False: that way is
/// not open for this block, and nothing happened.
static inline bool memrt__block_delete_quick(memrt_meminfo_t *mi);

/// The block is complete: it goes on the account and its count becomes 1. `site` is its place of
/// birth for the trace.
memrt_meminfo_t *memrt__block_born(memrt_meminfo_t *mi, uint32_t site);

/// Give an unborn block up.
void memrt__block_discard(memrt_meminfo_t *mi);

/// Let a block say where its data is. Relaxed, because who walks the live set may read it
/// meanwhile.
static inline void memrt__block_set_data(memrt_meminfo_t *mi, void *data, size_t size)
{
    memrt__store_relaxed((size_t *)&mi->data, (size_t)data);
    memrt__store_relaxed(&mi->size, size);
}

/// Take a block whose count is zero off the books and give its memory back.
void memrt__block_delete(memrt_meminfo_t *mi);

/// Make sure that nobody else holds the block nor can come to hold it. False: somebody does.
bool memrt__block_claim(memrt_meminfo_t *mi);

/// Resize a claimed block and give the claim up. NULL: out of memory, counted as failed, nothing
/// changed.
memrt_meminfo_t *memrt__block_resize(memrt_meminfo_t *mi, size_t size);

/// The same the short way, for a block that nobody else holds nor can find. NULL: that way is not
/// open, and nothing happened.
memrt_meminfo_t *memrt__block_resize_quick(memrt_meminfo_t *mi, size_t size);

/// Whether the header of a listed block says what a header can say. A write before the start of the
/// data reaches its last words first.
bool memrt__block_is_sound(const memrt_meminfo_t *mi);

/// Whether the block of a sound header was written outside of, or has another size than the header
/// says; `text` says in a sentence what is wrong. False also where no guard fenced it.
bool memrt__block_fault(const memrt_meminfo_t *mi, char *text, size_t length);

/// Where a guarded block with a sound header was made, as lines that begin with a line's end, or
/// "".
void memrt__block_tell(const memrt_meminfo_t *mi, char *text, size_t length);

/// Whether a block is nothing by itself: the data of a resizable MemInfo, and nobody asked for
/// more.
static inline bool memrt__block_is_part(const memrt_meminfo_t *mi)
{
    unsigned both = MEMRT__FLAG_PART | MEMRT__FLAG_MEMINFO;
    return (memrt__flags_load_relaxed(&mi->flags) & both) == MEMRT__FLAG_PART;
}

/// Header for a tiny block that is to have one, with a count of 2: who has the data, and the
/// caller. NULL: out of memory, counted as failed.
memrt_meminfo_t *memrt__block_new_tiny(memrt_policy_t *policy, void *data, size_t size);

/// It is the one: count it. Or it is not, because another thread was first.
void memrt__block_born_tiny(const memrt_meminfo_t *mi);
void memrt__block_discard_tiny(memrt_meminfo_t *mi);

/// Count a block as a MemInfo from now on, once.
void memrt__block_promote(memrt_meminfo_t *mi);

/// Count a request for `size` bytes that could not be met.
void memrt__block_refused(memrt_policy_t *policy, size_t size);

/// The one way from a data pointer that memrt gave out to its header.
static inline memrt_meminfo_t *memrt__block_of(const void *data)
{
    return (memrt_meminfo_t *)((uintptr_t)data - MEMRT_HEADER_SIZE);
}

/// Name the block, which puts it in the live set if it is not there; NULL takes the name away.
/// False: no memory, nothing changed.
bool memrt__block_set_name(memrt_meminfo_t *mi, const char *name);

static inline bool memrt__is_quick_size(size_t size)
{
    return size - 1 < MEMRT__CLASS_DATA_MAX;
}

static inline unsigned memrt__class_in(unsigned flags)
{
    return (flags & MEMRT__FLAG_CLASS) >> MEMRT__FLAG_CLASS_AT;
}

/// Flags of a new block that goes back the short way.
static inline unsigned memrt__quick_flags(memrt_kind_t kind, unsigned class)
{
    return (kind == MEMRT_KIND_BLOCK ? 0 : MEMRT__FLAG_MEMINFO) | MEMRT__FLAG_QUICK |
           class << MEMRT__FLAG_CLASS_AT;
}

/// The header of a block with data that goes back the short way.
static MEMRT__INLINE void memrt__quick_write(memrt_meminfo_t *mi, uint32_t policy, size_t size,
                                             memrt_kind_t kind, size_t count)
{
    *mi = (memrt_meminfo_t){
        .refct = count,
        .data = mi + 1,
        .size = size,
        .policy = (uint16_t)policy,
        .kind = (uint8_t)kind,
        .align_log2 = 6,
        .lead = MEMRT_HEADER_SIZE,
        .flags = memrt__quick_flags(kind, memrt__class_of_data(size)),
    };
}

static MEMRT__INLINE memrt_meminfo_t *
memrt__block_new_quick(memrt__thread_t *self, memrt__home_t home, size_t size, memrt_kind_t kind)
{
    if (MEMRT__UNLIKELY(home.shard == NULL || !memrt__is_quick_size(size))) {
        return NULL;
    }
    unsigned class = memrt__class_of_data(size);
    memrt_meminfo_t *mi = memrt__cache_take_counted(self, home, class, kind, size);
    if (MEMRT__LIKELY(mi != NULL)) {
        memrt__quick_write(mi, home.account, size, kind, 1);
        memrt__probe_birth(mi + 1, size, home.account, kind);
    }
    return mi;
}

static MEMRT__INLINE memrt_meminfo_t *memrt__block_new_plain(const memrt_policy_t *policy,
                                                             size_t size, memrt_kind_t kind)
{
    memrt__thread_t *self = memrt__self;
    return memrt__is_watched(MEMRT__WATCH_SLOWLY)
               ? NULL
               : memrt__block_new_quick(self, memrt__home_of(self, policy), size, kind);
}

static inline memrt_meminfo_t *memrt__header_new_quick(memrt_policy_t *policy, memrt_kind_t kind)
{
    memrt__thread_t *self = memrt__self;
    memrt__home_t home = memrt__home_of(self, policy);
    bool open = home.shard != NULL && !memrt__is_watched(MEMRT__WATCH_SLOWLY);
    memrt_meminfo_t *mi = open ? memrt__bin_pop(&self->bins[0]) : NULL;
    if (MEMRT__UNLIKELY(mi == NULL)) {
        return NULL;
    }
    *mi = (memrt_meminfo_t){
        .refct = 1,
        .policy = (uint16_t)home.account,
        .kind = (uint8_t)kind,
        .align_log2 = 6,
        .lead = MEMRT_HEADER_SIZE,
        .flags = memrt__quick_flags(kind, 0),
    };
    memrt__count_in(&home.shard->made[kind], 1);
    return mi;
}

/// Take back what memrt__header_new_quick() just made, as if it had never been.
static inline void memrt__header_undo_quick(memrt_meminfo_t *mi)
{
    memrt__thread_t *self = memrt__self;
    memrt__count_in(&memrt__thread_shard(self, mi->policy)->made[mi->kind], (size_t)-1);
    memrt__bin_push(&self->bins[0], mi);
}

static inline bool memrt__has_data(memrt_kind_t kind)
{
    return kind == MEMRT_KIND_INLINE || kind == MEMRT_KIND_BLOCK;
}

static inline bool memrt__block_delete_quick(memrt_meminfo_t *mi)
{
    unsigned flags = memrt__flags_load_relaxed(&mi->flags);
    unsigned special = MEMRT__FLAG_LISTED | MEMRT__FLAG_WATCHED | MEMRT__FLAG_PROMOTED |
                       MEMRT__FLAG_HELD | MEMRT__FLAG_TRACED;
    memrt__thread_t *self = memrt__self;
    if (MEMRT__UNLIKELY((flags & (MEMRT__FLAG_QUICK | special)) != MEMRT__FLAG_QUICK ||
                        mi->dtor != NULL || self == NULL || memrt__class_in(flags) == 0)) {
        return false;
    }
    if (MEMRT__UNLIKELY(!memrt__cache_give_counted(self, mi->policy, memrt__class_in(flags),
                                                   mi->kind, mi->size, mi))) {
        return false;
    }
    memrt__store_relaxed(&mi->refct, 0); /* in the bin of this thread nobody else sees it */
    MEMRT__PROBE4(death, mi->data, mi->size, mi->policy, mi->kind);
    return true;
}

/// Who is told of watched blocks. Release by memrt__watcher_set, partner: acquire where it is
/// called.
void memrt__watcher_set(const memrt_watcher_t *watcher);

#endif
