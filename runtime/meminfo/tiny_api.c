#include "runtime/meminfo/tiny_api.h"

#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/size.h"
#include "runtime/meminfo/block.h"
#include "runtime/meminfo/block_alloc.h"
#include "runtime/meminfo/references.h"
#include "runtime/meminfo/tiny.h"
#include "runtime/policy/memory_limit.h"
#include "runtime/policy/reclaim.h"

/// Abort unless a block is live. Call this function before reading other fields.
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

/// Slow path of a free: the block is not tiny, has a MemInfo, the counters need an update of the
/// aggregates, or the bin is full. Aborts if the block is not live.
MEMRT__APART static void free_tiny_slow(memrt__tiny_t *tiny)
{
    if (memrt__is_offset_data(tiny + 1)) {
        memrt__meminfo_release(memrt__block_of(tiny + 1));
        return;
    }
    require_live("block_free", tiny);
    memrt_meminfo_t *mi = get_tiny_meminfo(tiny);
    if (mi != NULL) {
        memrt__meminfo_release(mi);
    } else {
        memrt__tiny_end(tiny);
    }
}

/// Fast path of a free. `word` is the word of tiny blocks of the account, less the size. False,
/// with nothing changed: the block has another account or a MemInfo or is not live, the counters
/// need an update of the aggregates, or the bin of the thread cache is full.
static MEMRT__INLINE bool free_tiny_at(memrt__thread_t *self, memrt__shard_t *shard, size_t word,
                                       uint32_t account, memrt__tiny_t *tiny)
{
    size_t size = memrt__load_relaxed(&tiny->word) - word;
    if (MEMRT__UNLIKELY(size > MEMRT_TINY_MAX)) {
        return false;
    }
    MEMRT__ASSERT(size != 0 && tiny->meminfo == 0);
    size_t class = memrt__class_of_tiny(size);
    if (MEMRT__UNLIKELY(
            !memrt__bin_give_counted(self, class, shard, MEMRT__KIND_TINY, size, tiny))) {
        return false;
    }
    /* Safe after the give: only the calling thread accesses blocks in its own bins. */
    memrt__store_relaxed(&tiny->word, 0);
    memrt__probe_free(tiny + 1, size, account, MEMRT_KIND_BLOCK);
    return true;
}

/// Free a block that memrt__tiny_api_free() did not free, mostly of another account than that of
/// the first home.
MEMRT__APART static void free_tiny_of_account(memrt__tiny_t *tiny)
{
    memrt__thread_t *self = memrt__self;
    const memrt__home_t *second = &self->homes[1];
    if (MEMRT__LIKELY(free_tiny_at(self, second->shard, second->tiny, second->account, tiny))) {
        return;
    }
    uint32_t account = memrt__tiny_account(tiny);
    bool may_be_fast = memrt__tiny_is_live(tiny) && memrt__thread_or_null() != NULL;
    memrt__shard_t *shard = may_be_fast ? memrt__thread_shard(self, account) : NULL;
    if (shard == NULL || !free_tiny_at(self, shard, memrt__tiny_word_of(account), account, tiny)) {
        free_tiny_slow(tiny);
    }
}

void memrt__tiny_api_free(void *policy, void *data)
{
    (void)policy;
    memrt__tiny_t *tiny = memrt__tiny_of(data);
    memrt__thread_t *self = memrt__self;
    const memrt__home_t *home = &self->homes[0];
    if (MEMRT__UNLIKELY(!free_tiny_at(self, home->shard, home->tiny, home->account, tiny))) {
        free_tiny_of_account(tiny);
    }
}

/// Change the size of a block within its size class. NULL: a limit is reached, nothing changed.
static void *resize_tiny_in_place(memrt__tiny_t *tiny, size_t size)
{
    size_t old_size = memrt__tiny_size(tiny);
    memrt_policy_t *policy = memrt__tiny_policy(tiny);
    MEMRT__ASSERT(memrt__class_of_tiny(size) == memrt__class_of_tiny(old_size));
    if (size > old_size && !memrt__limit_admit(&policy->account, size - old_size)) {
        return NULL;
    }
    memrt__tally_t tally = memrt__tally(&policy->account);
    memrt__tally_resized(&tally, MEMRT__KIND_TINY, old_size, size);
    if (size > old_size) {
        memrt__tally_settle(&tally, size - old_size);
        memrt__tally_grow(&tally, size - old_size);
    } else {
        memrt__tally_shrink(&tally, old_size - size);
    }
    memrt__probe_resize(tiny + 1, tiny + 1, old_size, size);
    memrt__store_relaxed(&tiny->word, tiny->word - old_size + size);
    return memrt__tiny_data(tiny);
}

/// Resize a block by moving the data to a new block. The counters show one resize, and one
/// allocated block with another size: neither the new block nor the old block counts as an
/// allocation or a free. NULL: out of memory, nothing changed.
static void *move_tiny_block(memrt__tiny_t *tiny, size_t size)
{
    memrt_policy_t *policy = memrt__tiny_policy(tiny);
    size_t stays = memrt__size_min(memrt__tiny_size(tiny), size);
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
    memrt__tally_made(&tally, MEMRT__KIND_TINY, memrt__tiny_size(tiny), (size_t)-1);
    memrt__tally_shrink(&tally, memrt__tiny_size(tiny) - stays);
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

/// Return whether a block keeps its address when resized.
static bool may_stay(const memrt__tiny_t *tiny, size_t size)
{
    return !memrt__is_slow(MEMRT__SLOW_ALWAYS) &&
           memrt__tiny_fits(memrt__tiny_policy(tiny), size) &&
           memrt__class_of_tiny(size) == memrt__class_of_tiny(memrt__tiny_size(tiny));
}

/// Resize a block in one attempt. NULL: out of memory, nothing changed.
static void *resize_tiny(memrt__tiny_t *tiny, size_t size)
{
    memrt_meminfo_t *mi = get_tiny_meminfo(tiny);
    if (mi != NULL) {
        return copy_shared_block(mi, size);
    }
    return may_stay(tiny, size) ? resize_tiny_in_place(tiny, size) : move_tiny_block(tiny, size);
}

memrt_status_t memrt__tiny_api_try_expand(void *data, size_t size)
{
    memrt__tiny_t *tiny = memrt__tiny_of(data);
    require_live("block_try_expand", tiny);
    if (get_tiny_meminfo(tiny) != NULL) {
        return MEMRT_EBUSY;
    }
    bool fits = size <= memrt__tiny_size(tiny) ||
                (may_stay(tiny, size) && resize_tiny_in_place(tiny, size) != NULL);
    return fits ? MEMRT_OK : MEMRT_ENOMEM;
}

size_t memrt__tiny_api_usable_size(const void *data)
{
    const memrt__tiny_t *tiny = memrt__tiny_of(data);
    require_live("block_usable_size", tiny);
    return memrt__tiny_good_size(memrt__tiny_size(tiny));
}

/// Resize to repeat, and the data of the last attempt.
typedef struct repeated_resize {
    memrt__tiny_t *tiny;
    size_t size;
    void *data;
} repeated_resize_t;

static bool repeat_resize(void *context)
{
    repeated_resize_t *repeated = context;
    repeated->data = resize_tiny(repeated->tiny, repeated->size);
    return repeated->data != NULL;
}

/// Free memory and repeat a failed resize. NULL: out of memory.
MEMRT__COLD static void *reclaim_and_resize(memrt__tiny_t *tiny, size_t size)
{
    repeated_resize_t repeated = {.tiny = tiny, .size = size};
    memrt_policy_t *policy = memrt__tiny_policy(tiny);
    size_t rise = size - memrt__size_min(memrt__tiny_size(tiny), size);
    if (!memrt__reclaim(&policy->account, rise, repeat_resize, &repeated)) {
        memrt__block_refused(policy, size);
    }
    return repeated.data;
}

void *memrt__tiny_api_realloc(void *data, size_t size)
{
    memrt__tiny_t *tiny = memrt__tiny_of(data);
    require_live("block_realloc", tiny);
    void *resized = resize_tiny(tiny, size);
    return MEMRT__LIKELY(resized != NULL) ? resized : reclaim_and_resize(tiny, size);
}

/// Mark a block as one with a MemInfo, so that a free takes the slow path. Each thread that gets
/// the MemInfo writes the mark, because its free may come before another thread writes the mark.
static void mark_shared(memrt__tiny_t *tiny)
{
    size_t word = (uint32_t)memrt__load_relaxed(&tiny->word);
    memrt__store_relaxed(&tiny->word, word | (size_t)MEMRT__TINY_SHARED << MEMRT__TINY_MARK_AT);
}

memrt_status_t memrt__tiny_api_meminfo(void *data, memrt_meminfo_t **out)
{
    memrt__tiny_t *tiny = memrt__tiny_of(data);
    require_live("block_meminfo", tiny);
    memrt_meminfo_t *mi = get_tiny_meminfo(tiny);
    if (mi == NULL) {
        mi = memrt__block_new_tiny(memrt__tiny_policy(tiny), data, memrt__tiny_size(tiny));
        if (mi == NULL) {
            return MEMRT_ENOMEM;
        }
        if (memrt__cas_release(&tiny->meminfo, 0, (size_t)mi)) {
            mark_shared(tiny);
            memrt__block_notify_alloc_tiny(mi);
            *out = mi;
            return MEMRT_OK;
        }
        memrt__block_discard_tiny(mi);
        mi = get_tiny_meminfo(tiny);
    }
    mark_shared(tiny);
    memrt__meminfo_acquire(mi);
    *out = mi;
    return MEMRT_OK;
}
