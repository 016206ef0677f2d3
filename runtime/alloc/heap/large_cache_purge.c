#include "runtime/alloc/heap/large_cache_purge.h"

#include "runtime/alloc/heap/retention_budget.h"
#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/config/options.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"

/// Cache a mapping that the system refused to unmap, in the cache of the process. The advice for
/// its pages is unknown. While a fork takes long, the addresses are lost.
static void cache_stuck_mapping(void *mapping, size_t bytes)
{
    memrt__cached_mapping_t *entry = mapping;
    *entry = (memrt__cached_mapping_t){
        .bytes = bytes, .since = memrt__os_now_ns(), .mixed = true, .stuck = true};
    if (memrt__lock_or_fork(MEMRT__RANK_LARGE_CACHE)) {
        memrt__mapping_lists_insert(&memrt__large_cache_shared.lists, entry);
        memrt__unlock(MEMRT__RANK_LARGE_CACHE);
    }
}

/// Unmapping a part of a kernel mapping splits the kernel mapping in two, and fails at the maximum
/// number of mappings per process. Then the pages go back, and the addresses stay cached.
size_t memrt__large_cache_unmap(memrt__cached_mapping_t *list)
{
    size_t unmapped = 0;
    while (list != NULL) {
        memrt__cached_mapping_t *next = list->next;
        size_t bytes = list->bytes;
        if (memrt__os_unmap(list, bytes)) {
            unmapped += bytes;
        } else {
            memrt__os_discard(list, bytes);
            cache_stuck_mapping(list, bytes);
        }
        list = next;
    }
    return unmapped;
}

/// Move the mappings cached before `then` to `out`. When the cache empties, the high-water mark
/// restarts at current use.
static void move_old_entries(memrt__large_cache_t *cache, uint64_t then,
                             memrt__cached_mapping_t **out)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_LARGE_CACHE);
    memrt__mapping_lists_move_old(&cache->lists, then, out);
    if (cache->lists.cached.oldest == NULL) {
        cache->most_used = memrt__cache_room_used(cache);
    }
}

size_t memrt__large_cache_purge(memrt__large_cache_t *cache, uint64_t then)
{
    memrt__cached_mapping_t *old = NULL;
    if (!memrt__lock_or_fork(MEMRT__RANK_LARGE_CACHE)) {
        return 0;
    }
    move_old_entries(cache, then, &old);
    memrt__unlock(MEMRT__RANK_LARGE_CACHE);
    return memrt__large_cache_unmap(old);
}

size_t memrt__large_cache_purge_all(void)
{
    memrt__cached_mapping_t *old = NULL;
    if (!memrt__lock_or_fork(MEMRT__RANK_LARGE_CACHE)) {
        return 0;
    }
    for (memrt__large_cache_t *cache = &memrt__large_cache_shared; cache != NULL;
         cache = cache->next_other) {
        move_old_entries(cache, UINT64_MAX, &old);
    }
    memrt__unlock(MEMRT__RANK_LARGE_CACHE);
    return memrt__large_cache_unmap(old);
}

void memrt__large_cache_retry(void)
{
    memrt__large_cache_t *cache =
        &memrt__large_cache_shared; /* the only cache with stuck mappings */
    memrt__lock(MEMRT__RANK_LARGE_CACHE);
    while (cache->lists.stuck.oldest != NULL) {
        memrt__cached_mapping_t *entry = cache->lists.stuck.oldest;
        memrt__mapping_lists_extract(&cache->lists, entry);
        entry->stuck = false;
        memrt__mapping_lists_insert(&cache->lists, entry);
    }
    memrt__unlock(MEMRT__RANK_LARGE_CACHE);
}

/// Return the earliest caching time within the decay, on the clock of memrt__os_now_ns(). Returns 0
/// without a decay, so that all mappings stay.
static uint64_t get_oldest_allowed(const memrt__large_cache_t *cache, uint64_t now)
{
    size_t decay = memrt__cache_room_decay(cache);
    uint64_t ns = (uint64_t)decay * MEMRT__MS;
    return decay != MEMRT__DECAY_NEVER && now > ns ? now - ns : 0;
}

size_t memrt__large_cache_purge_old(uint64_t now)
{
    memrt__cached_mapping_t *old = NULL;
    if (!memrt__lock_or_fork(MEMRT__RANK_LARGE_CACHE)) {
        return 0;
    }
    for (memrt__large_cache_t *cache = &memrt__large_cache_shared; cache != NULL;
         cache = cache->next_other) {
        move_old_entries(cache, get_oldest_allowed(cache, now), &old);
    }
    memrt__unlock(MEMRT__RANK_LARGE_CACHE);
    return memrt__large_cache_unmap(old);
}

void memrt__large_cache_trim(void)
{
    memrt__cached_mapping_t *excess = NULL;
    if (!memrt__lock_or_fork(MEMRT__RANK_LARGE_CACHE)) {
        return;
    }
    for (memrt__large_cache_t *cache = &memrt__large_cache_shared; cache != NULL;
         cache = cache->next_other) {
        memrt__mapping_lists_shrink(&cache->lists, memrt__cache_room_max(cache), &excess);
    }
    memrt__unlock(MEMRT__RANK_LARGE_CACHE);
    memrt__large_cache_unmap(excess);
}

void memrt__large_cache_make_room(void)
{
    memrt__retention_budget_update(memrt__os_now_ns());
    if (memrt__load_relaxed(&memrt__mapping_lists_bytes) != 0) {
        memrt__large_cache_trim();
    }
}

size_t memrt__large_cache_aging(void)
{
    size_t bytes = 0;
    if (!memrt__lock_or_fork(MEMRT__RANK_LARGE_CACHE)) {
        return 0;
    }
    for (memrt__large_cache_t *cache = &memrt__large_cache_shared; cache != NULL;
         cache = cache->next_other) {
        bytes +=
            memrt__cache_room_decay(cache) == MEMRT__DECAY_NEVER ? 0 : cache->lists.cached.bytes;
    }
    memrt__unlock(MEMRT__RANK_LARGE_CACHE);
    return bytes;
}
