#include "runtime/alloc/heap/cache_room.h"

#include "runtime/alloc/heap/pages/page_heap.h"
#include "runtime/alloc/heap/retention_budget.h"
#include "runtime/base/atomics.h"
#include "runtime/base/compiler.h"
#include "runtime/base/size.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"

memrt__large_cache_t memrt__large_cache_shared = {.limits = MEMRT__INHERIT_ALL};

static size_t choose_limit(const size_t *of_cache, const size_t *of_process)
{
    size_t own = memrt__load_relaxed(of_cache);
    return own != MEMRT__INHERIT ? own : memrt__load_relaxed(of_process);
}

size_t memrt__cache_room_decay(const memrt__large_cache_t *cache)
{
    return choose_limit(&cache->limits.decay, &memrt__options.decay);
}

static size_t get_cache_limit(const memrt__large_cache_t *cache)
{
    return choose_limit(&cache->limits.cache_limit, &memrt__options.cache_limit);
}

void memrt__cache_room_change_late(memrt__large_cache_t *cache, size_t in_use, size_t requested)
{
    MEMRT__ASSERT(in_use % memrt__os_page_size() == 0);
    memrt__fetch_add_relaxed(&cache->late_in_use, in_use);
    memrt__fetch_add_relaxed(&cache->late_requested, requested);
}

void memrt__cache_room_apply_late(memrt__large_cache_t *cache)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_LARGE_CACHE);
    size_t in_use = memrt__load_relaxed(&cache->late_in_use);
    size_t requested = memrt__load_relaxed(&cache->late_requested);
    memrt__cache_room_change_late(cache, (size_t)0 - in_use, (size_t)0 - requested);
    cache->in_use += in_use;
    cache->requested += requested;
}

bool memrt__cache_room_lock(memrt__large_cache_t *cache)
{
    if (!memrt__lock_or_fork(MEMRT__RANK_LARGE_CACHE)) {
        return false;
    }
    if (MEMRT__UNLIKELY((memrt__load_relaxed(&cache->late_in_use) |
                         memrt__load_relaxed(&cache->late_requested)) != 0)) {
        memrt__cache_room_apply_late(cache);
    }
    return true;
}

/// Return the bytes that the limit of the process leaves for one cache.
static size_t get_remaining_limit(const memrt__large_cache_t *cache)
{
    size_t limit = memrt__load_relaxed(&memrt__options.cache_limit);
    MEMRT__ASSERT(memrt__mapping_lists_bytes >= cache->lists.cached.bytes);
    size_t others = memrt__mapping_lists_bytes - cache->lists.cached.bytes;
    return limit > others ? limit - others : 0;
}

static bool is_shared_cache(const memrt__large_cache_t *cache)
{
    return cache == &memrt__large_cache_shared;
}

size_t memrt__cache_room_used(const memrt__large_cache_t *cache)
{
    return cache->in_use - cache->requested +
           (is_shared_cache(cache) ? memrt__page_heap_used() : 0);
}

/// Return the maximum of used and cached bytes together.
static size_t get_footprint_max(const memrt__large_cache_t *cache)
{
    return is_shared_cache(cache) ? cache->most_used + memrt__retention_budget() : cache->most_used;
}

size_t memrt__cache_room_max(const memrt__large_cache_t *cache)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_LARGE_CACHE);
    size_t spans = is_shared_cache(cache) ? memrt__page_heap_used() + memrt__page_heap_cached() : 0;
    size_t most = get_footprint_max(cache), taken = cache->in_use + spans;
    if (cache->closed || memrt__cache_room_decay(cache) == 0 || most <= taken) {
        return 0;
    }
    size_t limit = memrt__size_min(get_cache_limit(cache), get_remaining_limit(cache));
    return memrt__size_min(most - taken, limit);
}

bool memrt__cache_room_needs_pages(const memrt__large_cache_t *cache)
{
    size_t spans = memrt__page_heap_used() + memrt__page_heap_cached();
    return is_shared_cache(cache) && memrt__page_heap_aging() > MEMRT__RETENTION_MIN &&
           cache->in_use + spans > get_footprint_max(cache);
}

void memrt__cache_room_request(memrt__large_cache_t *cache, size_t bytes,
                               memrt__cached_mapping_t **excess)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_LARGE_CACHE);
    MEMRT__ASSERT(bytes != 0);
    cache->in_use += bytes;
    cache->requested += bytes;
    memrt__mapping_lists_shrink(&cache->lists, memrt__cache_room_max(cache), excess);
}

void memrt__cache_room_confirm(memrt__large_cache_t *cache, size_t bytes)
{
    if (!memrt__cache_room_lock(cache)) {
        memrt__cache_room_change_late(cache, 0, (size_t)0 - bytes);
        return;
    }
    MEMRT__ASSERT(cache->requested >= bytes && cache->in_use >= bytes);
    cache->requested -= bytes;
    cache->most_used = memrt__size_max(cache->most_used, memrt__cache_room_used(cache));
    memrt__unlock(MEMRT__RANK_LARGE_CACHE);
}

void memrt__cache_room_cancel(memrt__large_cache_t *cache, size_t bytes)
{
    if (!memrt__cache_room_lock(cache)) {
        memrt__cache_room_change_late(cache, (size_t)0 - bytes, (size_t)0 - bytes);
        return;
    }
    MEMRT__ASSERT(cache->requested >= bytes && cache->in_use >= bytes);
    cache->in_use -= bytes;
    cache->requested -= bytes;
    memrt__unlock(MEMRT__RANK_LARGE_CACHE);
}
