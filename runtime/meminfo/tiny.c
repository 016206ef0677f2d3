#include "runtime/meminfo/tiny.h"

#include <string.h>

#include "runtime/alloc/cache.h"
#include "runtime/meminfo/raw.h"

static void *data_of(memrt__tiny_t *tiny)
{
    return tiny + 1;
}

static memrt_policy_t *policy_of(const memrt__tiny_t *tiny)
{
    return memrt__policies[tiny->policy];
}

static memrt_meminfo_t *meminfo_of(const memrt__tiny_t *tiny)
{
    return (memrt_meminfo_t *)memrt__load_acquire(&tiny->meminfo);
}

void *memrt__tiny_alloc(memrt_policy_t *policy, size_t size)
{
    memrt__thread_t *self = memrt__self;
    memrt__shard_t *shard = self == NULL ? NULL : memrt__thread_shard(self, policy->account.index);
    memrt__tiny_t *tiny = memrt__shard_serves(shard, &policy->account)
                              ? memrt__cache_take(self, memrt__class_of_tiny(size))
                              : NULL;
    if (tiny == NULL) {
        return NULL;
    }
    memrt__tiny_write(tiny, policy->account.index, size);
    memrt__count_in(&shard->made[MEMRT__KIND_TINY], 1);
    memrt__count_size(shard, size);
    memrt__shard_grow(shard, &policy->account, size);
    memrt__probe_birth(tiny + 1, size, policy->account.index, MEMRT_KIND_BLOCK);
    return data_of(tiny);
}

static void give_back(memrt__tiny_t *tiny)
{
    uint32_t account = tiny->policy;
    size_t size = tiny->size;
    memrt__cache_return(tiny->class, tiny);
    memrt__probe_death(tiny + 1, size, account, MEMRT_KIND_BLOCK);
}

/// The short way: nothing to tell the account, and room in the thread's bin.
static inline bool end_quick(memrt__tiny_t *tiny)
{
    memrt__thread_t *self = memrt__self;
    uint32_t account = tiny->policy;
    size_t size = tiny->size;
    if (self == NULL ||
        !memrt__cache_give_counted(self, account, tiny->class, MEMRT__KIND_TINY, size, tiny)) {
        return false;
    }
    memrt__probe_death(tiny + 1, size, account, MEMRT_KIND_BLOCK);
    return true;
}

/// The count `freed` is the last that is touched of the policy.
static void end(memrt__tiny_t *tiny)
{
    memrt_policy_t *policy = policy_of(tiny);
    size_t size = tiny->size;
    give_back(tiny);
    memrt__tally_t tally = memrt__tally(&policy->account);
    memrt__tally_shrink(&tally, size);
    memrt__tally_out(&tally, &tally.shard->freed[MEMRT__KIND_TINY], 1);
}

void memrt__tiny_free(void *data)
{
    memrt__tiny_t *tiny = memrt__tiny_of(data);
    memrt_meminfo_t *mi = meminfo_of(tiny);
    if (MEMRT__UNLIKELY(mi != NULL)) {
        memrt__meminfo_release(mi);
    } else if (MEMRT__UNLIKELY(!end_quick(tiny))) {
        end(tiny);
    }
}

void memrt__tiny_end(void *data)
{
    end(memrt__tiny_of(data));
}

/// The block stays, its size changes.
static void *resize_in_place(memrt__tiny_t *tiny, size_t size)
{
    memrt__tally_t tally = memrt__tally(&policy_of(tiny)->account);
    memrt__tally_in(&tally, &tally.shard->realloc, 1);
    if (size > tiny->size) {
        memrt__tally_grow(&tally, size - tiny->size);
    } else {
        memrt__tally_shrink(&tally, tiny->size - size);
    }
    memrt__probe_resize(tiny + 1, tiny + 1, tiny->size, size);
    tiny->size = (uint16_t)size;
    return data_of(tiny);
}

/// A block that moved was made anew, which is no birth, and its old place goes, which is no death.
static void *move(memrt__tiny_t *tiny, size_t size)
{
    memrt_policy_t *policy = policy_of(tiny);
    size_t stays = memrt__size_min(tiny->size, size);
    memrt__tally_t tally = memrt__tally(&policy->account);
    memrt__tally_ungrow(&tally, stays);
    void *moved = memrt__raw_alloc_from(policy, size);
    if (moved == NULL) {
        memrt__tally_grow(&tally, stays);
        return NULL;
    }
    memcpy(moved, data_of(tiny), stays);
    memrt__tally_in(&tally, &tally.shard->realloc, 1);
    memrt__tally_in(&tally, &tally.shard->made[MEMRT__KIND_TINY], (size_t)-1);
    memrt__tally_shrink(&tally, tiny->size - stays);
    give_back(tiny);
    return moved;
}

/// Others hold the block: the caller gets its own, they keep theirs.
static void *part(memrt_meminfo_t *mi, size_t size)
{
    void *own = memrt__raw_alloc_from(memrt__policy_of(mi), size);
    if (own != NULL) {
        memcpy(own, mi->data, memrt__size_min(mi->size, size));
        memrt__meminfo_release(mi);
    }
    return own;
}

void *memrt__tiny_realloc(void *data, size_t size)
{
    memrt__tiny_t *tiny = memrt__tiny_of(data);
    memrt_meminfo_t *mi = meminfo_of(tiny);
    if (mi != NULL) {
        return part(mi, size);
    }
    bool stays = !memrt__is_watched(MEMRT__WATCH_SLOWLY) &&
                 memrt__tiny_fits(policy_of(tiny), size) &&
                 memrt__class_of_tiny(size) == tiny->class;
    return stays ? resize_in_place(tiny, size) : move(tiny, size);
}

memrt_status_t memrt__tiny_meminfo(void *data, memrt_meminfo_t **out)
{
    memrt__tiny_t *tiny = memrt__tiny_of(data);
    memrt_meminfo_t *mi = meminfo_of(tiny);
    if (mi == NULL) {
        mi = memrt__block_new_tiny(policy_of(tiny), data, tiny->size);
        if (mi == NULL) {
            return MEMRT_ENOMEM;
        }
        if (memrt__cas_release(&tiny->meminfo, 0, (size_t)mi)) {
            memrt__block_born_tiny(mi);
            *out = mi;
            return MEMRT_OK;
        }
        memrt__block_discard_tiny(mi);
        mi = meminfo_of(tiny);
    }
    memrt__meminfo_acquire(mi);
    *out = mi;
    return MEMRT_OK;
}
