#include "runtime/meminfo/tiny_api.h"

#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/size.h"
#include "runtime/meminfo/block.h"
#include "runtime/meminfo/block_alloc.h"
#include "runtime/meminfo/references.h"
#include "runtime/meminfo/tiny.h"

/// Abort unless a block is live. Call this function before reading other fields: any other word of
/// a freed block may be a free-list link.
static void require_live(const char *call, const memrt__tiny_t *tiny)
{
    if (MEMRT__UNLIKELY(!memrt__tiny_is_live(tiny))) {
        memrt__abort("%s of %p: the block must be live, but was freed before or is not from "
                     "memrt" MEMRT__CHECK_HINT,
                     call, (const void *)(tiny + 1));
    }
}

static memrt_meminfo_t *get_tiny_meminfo(const memrt__tiny_t *tiny)
{
    return (memrt_meminfo_t *)memrt__load_acquire(&tiny->meminfo);
}

/// Slow path of a free: the block has a MemInfo, the counters need an update of the aggregates, or
/// the bin is full. Aborts if the block is not live.
MEMRT__APART static void free_tiny_slow(memrt__tiny_t *tiny)
{
    require_live("block_free", tiny);
    memrt_meminfo_t *mi = get_tiny_meminfo(tiny);
    if (mi != NULL) {
        memrt__meminfo_release(mi);
    } else {
        memrt__tiny_end(tiny);
    }
}

/// Fast path of a free: a live block without a MemInfo, no update of the aggregates, and room in
/// the bin of the thread cache. False: the fast path does not apply.
static inline bool free_tiny_fast(memrt__tiny_t *tiny)
{
    memrt__thread_t *self = memrt__self;
    uint32_t account = tiny->policy;
    size_t size = tiny->size;
    if (MEMRT__UNLIKELY(!memrt__tiny_is_live(tiny) || get_tiny_meminfo(tiny) != NULL ||
                        self == NULL)) {
        return false;
    }
    if (!memrt__thread_cache_give_counted(self, account, memrt__class_of_tiny(size),
                                          MEMRT__KIND_TINY, size, tiny)) {
        return false;
    }
    memrt__probe_free(tiny + 1, size, account, MEMRT_KIND_BLOCK);
    return true;
}

void memrt__tiny_api_free(void *data)
{
    memrt__tiny_t *tiny = memrt__tiny_of(data);
    if (MEMRT__UNLIKELY(!free_tiny_fast(tiny))) {
        free_tiny_slow(tiny);
    }
}

/// Change the size of a block within its size class.
static void *resize_tiny_in_place(memrt__tiny_t *tiny, size_t size)
{
    MEMRT__ASSERT(memrt__class_of_tiny(size) == memrt__class_of_tiny(tiny->size));
    memrt__tally_t tally = memrt__tally(&memrt__tiny_policy(tiny)->account);
    memrt__tally_in(&tally, &tally.shard->realloc, 1);
    if (size > tiny->size) {
        memrt__tally_grow(&tally, size - tiny->size);
    } else {
        memrt__tally_shrink(&tally, tiny->size - size);
    }
    memrt__probe_resize(tiny + 1, tiny + 1, tiny->size, size);
    tiny->size = (uint16_t)size;
    return memrt__tiny_data(tiny);
}

/// Resize a block by moving the data to a new block. The counters and the histogram of sizes show
/// one resize: neither the new block nor the old block counts as an allocation or a free. NULL: out
/// of memory, nothing changed.
static void *move_tiny_block(memrt__tiny_t *tiny, size_t size)
{
    memrt_policy_t *policy = memrt__tiny_policy(tiny);
    size_t stays = memrt__size_min(tiny->size, size);
    MEMRT__ASSERT(get_tiny_meminfo(tiny) == NULL);
    memrt__tally_t tally = memrt__tally(&policy->account);
    memrt__tally_ungrow(&tally, stays);
    void *moved = memrt__block_alloc_moved(policy, size);
    if (moved == NULL) {
        memrt__tally_grow(&tally, stays);
        return NULL;
    }
    memcpy(moved, memrt__tiny_data(tiny), stays);
    memrt__tally_in(&tally, &tally.shard->realloc, 1);
    memrt__tally_in(&tally, &tally.shard->made[MEMRT__KIND_TINY], (size_t)-1);
    memrt__tally_size(&tally, size, (size_t)-1);
    memrt__tally_shrink(&tally, tiny->size - stays);
    memrt__tiny_cache(tiny);
    return moved;
}

/// Resize a block that has a MemInfo, and therefore may have other holders: the caller gets a copy,
/// and the other holders keep the old block. NULL: out of memory, nothing changed.
static void *copy_shared_block(memrt_meminfo_t *mi, size_t size)
{
    MEMRT__ASSERT((memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_TINY) != 0);
    void *own = memrt__block_alloc_from(memrt__policy_of(mi), size);
    if (own != NULL) {
        memcpy(own, mi->data, memrt__size_min(mi->size, size));
        memrt__meminfo_release(mi);
    }
    return own;
}

void *memrt__tiny_api_realloc(void *data, size_t size)
{
    memrt__tiny_t *tiny = memrt__tiny_of(data);
    require_live("block_realloc", tiny);
    memrt_meminfo_t *mi = get_tiny_meminfo(tiny);
    if (mi != NULL) {
        return copy_shared_block(mi, size);
    }
    bool stays = !memrt__is_slow(MEMRT__SLOW_ALWAYS) &&
                 memrt__tiny_fits(memrt__tiny_policy(tiny), size) &&
                 memrt__class_of_tiny(size) == memrt__class_of_tiny(tiny->size);
    return stays ? resize_tiny_in_place(tiny, size) : move_tiny_block(tiny, size);
}

memrt_status_t memrt__tiny_api_meminfo(void *data, memrt_meminfo_t **out)
{
    memrt__tiny_t *tiny = memrt__tiny_of(data);
    require_live("block_meminfo", tiny);
    memrt_meminfo_t *mi = get_tiny_meminfo(tiny);
    if (mi == NULL) {
        mi = memrt__block_new_tiny(memrt__tiny_policy(tiny), data, tiny->size);
        if (mi == NULL) {
            return MEMRT_ENOMEM;
        }
        if (memrt__cas_release(&tiny->meminfo, 0, (size_t)mi)) {
            memrt__block_notify_alloc_tiny(mi);
            *out = mi;
            return MEMRT_OK;
        }
        memrt__block_discard_tiny(mi);
        mi = get_tiny_meminfo(tiny);
    }
    memrt__meminfo_acquire(mi);
    *out = mi;
    return MEMRT_OK;
}
