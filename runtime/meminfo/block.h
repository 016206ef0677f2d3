#ifndef MEMRT_MEMINFO_BLOCK_H
#define MEMRT_MEMINFO_BLOCK_H

#include <stdbool.h>
#include <stddef.h>

#include <memrt/meminfo.h>

#include "runtime/alloc/heap/thread_cache.h"
#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/base/usdt.h"
#include "runtime/meminfo/block_layout.h"
#include "runtime/meminfo/block_memory.h"
#include "runtime/policy/home_setup.h"
#include "runtime/policy/scope.h"

/// Blocks: pieces of memory from an allocator, with a MemInfo header directly before the data.
///
///     | padding, lead - 64 bytes | header, 64 bytes | data, size bytes |
///     ^ start of the block                          ^ data, `lead` bytes after the start
///
/// Start and data both have the alignment of the block. This header allocates and frees blocks and
/// counts blocks in their accounts. References and destructors are in references.h, resizes in
/// block_resize.h.
///
/// A block is unpublished, with a reference count of 0 and in no account, until
/// memrt__block_notify_alloc(). The fast path publishes at once. The account counts each published
/// block once, and each free of a published block once.

/// Allocate an unpublished block, and list the block in the live set if `request->event` has a
/// sampling weight. A thread that finds the block in the live set cannot acquire the block, because
/// the reference count is 0. memrt__block_discard() frees the block and changes no account.
///
/// Before a block with data fails, memrt__reclaim() frees memory, unless `request->once`.
///
/// Failure: returns NULL when out of memory, and counts a failed request, unless `request->once`.
memrt_meminfo_t *memrt__block_new(const memrt__block_request_t *request);

/// Count and report a failed request for `size` bytes.
void memrt__block_refused(memrt_policy_t *policy, size_t size);

/// Fast path: take a block with data from the thread cache of `self`, the calling thread, count
/// the block in the shard of `home`, and return the block with count 1. The caller must have
/// checked that no observer needs the slow path. `kind` is MEMRT_KIND_BLOCK or MEMRT_KIND_INLINE.
/// NULL: the fast path does not apply; call memrt__block_new().
static MEMRT__INLINE memrt_meminfo_t *memrt__block_new_fast(memrt__thread_t *self,
                                                            const memrt__home_t *home, size_t size,
                                                            memrt_kind_t kind);

/// Slow path of memrt__block_new_fast(), for the most frequent cases: the gauge must report, the
/// bin is empty, or no home is set. Take a block with data from the thread cache, refill the cache
/// if necessary, and count the block. The reference count is 1. The caller must have checked for
/// sampling. A policy over an arena has blocks of the arena in place of a thread cache. NULL: the
/// policy or the size has neither, an observer is on, or the system is out of memory; call
/// memrt__block_new().
memrt_meminfo_t *memrt__block_new_cached(memrt_policy_t *policy, size_t size, memrt_kind_t kind);

/// Fast path: take a header without data from the thread cache, for an adopted or resizable
/// MemInfo, and count the header in the account. The reference count is 1. NULL: the fast path does
/// not apply, or an observer is on.
static inline memrt_meminfo_t *memrt__header_new_fast(memrt_policy_t *policy, memrt_kind_t kind);

/// Largest zeroed request that the fast path serves with memset. For larger requests, the allocator
/// may have memory that is zero already.
#define MEMRT__FAST_ZERO ((size_t)16 << 10)

/// Fast path of a free: subtract a block from the account and return the memory to the thread
/// cache. The caller has the only reference, with a count of 1, or dropped the last reference, with
/// a count of 0. False: the fast path does not apply, and nothing changed.
static MEMRT__INLINE bool memrt__block_delete_fast(memrt_meminfo_t *mi);

/// Part of memrt__block_delete_fast() for callers that compared the state: free a block of `kind`
/// that `shard` counts.
static MEMRT__INLINE bool memrt__block_delete_at(memrt__thread_t *self, memrt__shard_t *shard,
                                                 memrt_meminfo_t *mi, memrt_kind_t kind);

/// Publish a complete block: count the block in the account and set the reference count to 1.
/// `site` is the allocation site for the event trace.
memrt_meminfo_t *memrt__block_notify_alloc(memrt_meminfo_t *mi, uint32_t site);

/// Free an unpublished block. Nothing is counted.
void memrt__block_discard(memrt_meminfo_t *mi);

/// Free a block whose reference count is 0, and subtract the block from the account. If the system
/// refuses to make frozen pages writable, the block stays allocated.
void memrt__block_delete(memrt_meminfo_t *mi);

/// Allocate a separate header for a tiny block. The reference count is 2: one reference for the
/// holder of the data, one for the caller. Failure: returns NULL when out of memory, and counts a
/// failed request.
memrt_meminfo_t *memrt__block_new_tiny(memrt_policy_t *policy, void *data, size_t size);

/// Count a header from memrt__block_new_tiny() after it was published in the tiny block.
void memrt__block_notify_alloc_tiny(const memrt_meminfo_t *mi);

/// Free a header from memrt__block_new_tiny(), because another thread published a header for the
/// tiny block first.
void memrt__block_discard_tiny(memrt_meminfo_t *mi);

/// Set the member `bin` of a block that is in no event trace to memrt__block_bin().
void memrt__block_set_bin(memrt_meminfo_t *mi);

/// Promote a block: count the block as a MemInfo from now on. Repeated calls have no effect.
void memrt__block_promote(memrt_meminfo_t *mi);

/// Return whether `size` is 1 to MEMRT__CLASS_DATA_MAX; size 0 wraps around and is too large.
static inline bool memrt__is_fast_size(size_t size)
{
    return size - 1 < MEMRT__CLASS_DATA_MAX;
}

/// Complete the header of a block from the thread cache, so that memrt__block_delete_fast() can
/// free the block. `count` is the reference count.
static MEMRT__INLINE void memrt__fast_write(memrt_meminfo_t *mi, memrt_kind_t kind, size_t state,
                                            size_t size, size_t count)
{
    MEMRT__ASSERT((size_t)mi % MEMRT_HEADER_SIZE == 0);
    MEMRT__ASSERT(memrt__cached_header_is_valid(mi) && mi->bin == memrt__class_of_data(size));
    mi->refct = count;
    if (kind != MEMRT_KIND_BLOCK) {
        mi->dtor = NULL; /* again, as an overrun of the block before may have written the word */
    }
    mi->dtor_info = NULL;
    mi->size = size;
    memrt__state_write(mi, state);
    MEMRT__ASSERT(mi->policy < MEMRT__ACCOUNTS && memrt__has_data((memrt_kind_t)mi->kind));
}

static MEMRT__INLINE memrt_meminfo_t *memrt__block_new_fast(memrt__thread_t *self,
                                                            const memrt__home_t *home, size_t size,
                                                            memrt_kind_t kind)
{
    size_t class;
    if (MEMRT__LIKELY(memrt__is_linear_data(size))) {
        class = memrt__class_of_linear_data(size);
    } else if (memrt__is_fast_size(size)) {
        class = memrt__class_of_data(size);
    } else {
        return NULL;
    }
    memrt_meminfo_t *mi = memrt__bin_take_counted(self, class, home->shard, kind, size);
    if (MEMRT__LIKELY(mi != NULL)) {
        memrt__fast_write(mi, kind, memrt__home_state(home, kind), size, 1);
        memrt__probe_alloc(mi->data, size, home->account, kind);
    }
    return mi;
}

static inline memrt_meminfo_t *memrt__header_new_fast(memrt_policy_t *policy, memrt_kind_t kind)
{
    memrt__thread_t *self = memrt__self;
    memrt__home_t home = memrt__home_of(self, policy);
    bool is_fast = home.states[0] != MEMRT__NO_STATE && !memrt__is_slow(MEMRT__SLOW_ALWAYS);
    memrt_meminfo_t *mi = is_fast ? memrt__bin_pop(self, MEMRT__CLASS_HEADER) : NULL;
    if (MEMRT__UNLIKELY(mi == NULL)) {
        return NULL;
    }
    *mi = (memrt_meminfo_t){
        .refct = 1,
        .bin = MEMRT__CLASS_HEADER,
        .lead = MEMRT_HEADER_SIZE,
    };
    memrt__state_write(mi, memrt__state_of(home.account, kind));
    mi->flags |= MEMRT__FLAG_BARE;
    memrt__count_in(&home.shard->made[memrt__counts_of_kind(kind)], 1);
    return mi;
}

/// Undo memrt__header_new_fast(): return the header to the thread cache and subtract the count.
static inline void memrt__header_undo_fast(memrt_meminfo_t *mi)
{
    memrt__thread_t *self = memrt__self;
    MEMRT__ASSERT(!memrt__has_data((memrt_kind_t)mi->kind) && mi->bin == MEMRT__CLASS_HEADER);
    memrt__shard_t *shard = memrt__thread_shard(self, mi->policy);
    memrt__count_in(&shard->made[memrt__counts_of_kind(mi->kind)], (size_t)-1);
    memrt__bin_push(self, MEMRT__CLASS_HEADER, mi);
}

static MEMRT__INLINE bool memrt__block_delete_at(memrt__thread_t *self, memrt__shard_t *shard,
                                                 memrt_meminfo_t *mi, memrt_kind_t kind)
{
    MEMRT__ASSERT(mi->kind == kind);
    MEMRT__ASSERT(memrt__cached_header_is_valid(mi) && mi->bin == memrt__class_of_data(mi->size));
    if (MEMRT__UNLIKELY(!memrt__bin_give_counted(self, mi->bin, shard, kind, mi->size, mi))) {
        return false;
    }
    /* Safe after the give: only the calling thread accesses blocks in its own bins. */
    memrt__store_relaxed(&mi->refct, 0);
    MEMRT__PROBE4(free, mi->data, mi->size, mi->policy, mi->kind);
    return true;
}

static MEMRT__INLINE bool memrt__block_delete_fast(memrt_meminfo_t *mi)
{
    unsigned flags = memrt__flags_load_relaxed(&mi->flags);
    unsigned special =
        MEMRT__FLAG_KNOWN | MEMRT__FLAG_PROMOTED | MEMRT__FLAG_BARE | MEMRT__FLAG_FROZEN;
    memrt__thread_t *self = memrt__thread_or_null();
    if (MEMRT__UNLIKELY((flags & (MEMRT__FLAG_FAST | special)) != MEMRT__FLAG_FAST ||
                        mi->dtor != NULL || self == NULL)) {
        return false;
    }
    memrt__shard_t *shard = memrt__thread_shard(self, mi->policy);
    return shard != NULL && memrt__block_delete_at(self, shard, mi, (memrt_kind_t)mi->kind);
}

#endif
