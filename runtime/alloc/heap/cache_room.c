#include "runtime/alloc/heap/cache_room.h"

#include "runtime/alloc/heap/page_heap.h"
#include "runtime/alloc/heap/retention_budget.h"
#include "runtime/base/atomics.h"
#include "runtime/base/compiler.h"
#include "runtime/base/size.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"

memrt__large_cache_t memrt__large_cache_shared = {.limits = MEMRT__INHERIT_ALL};

static size_t choose_limit(size_t own, const size_t *of_process)
{
    return own != MEMRT__INHERIT ? own : memrt__load_relaxed(of_process);
}

size_t memrt__cache_room_decay(const memrt__large_cache_t *warm)
{
    return choose_limit(warm->limits.decay, &memrt__options.decay);
}

static size_t get_cache_limit(const memrt__large_cache_t *warm)
{
    return choose_limit(warm->limits.cache_limit, &memrt__options.cache_limit);
}

void memrt__cache_room_change_late(memrt__large_cache_t *warm, size_t in_use, size_t requested)
{
    MEMRT__ASSERT(in_use % memrt__os_page_size() == 0);
    memrt__fetch_add_relaxed(&warm->late_in_use, in_use);
    memrt__fetch_add_relaxed(&warm->late_requested, requested);
}

void memrt__cache_room_apply_late(memrt__large_cache_t *warm)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_LARGE_CACHE);
    size_t in_use = memrt__load_relaxed(&warm->late_in_use);
    size_t requested = memrt__load_relaxed(&warm->late_requested);
    memrt__cache_room_change_late(warm, (size_t)0 - in_use, (size_t)0 - requested);
    warm->in_use += in_use;
    warm->requested += requested;
}

bool memrt__cache_room_lock(memrt__large_cache_t *warm)
{
    if (!memrt__lock_or_fork(MEMRT__RANK_LARGE_CACHE)) {
        return false;
    }
    if (MEMRT__UNLIKELY((memrt__load_relaxed(&warm->late_in_use) |
                         memrt__load_relaxed(&warm->late_requested)) != 0)) {
        memrt__cache_room_apply_late(warm);
    }
    return true;
}

/// Return the bytes that the limit of the process leaves for one cache.
static size_t get_remaining_limit(const memrt__large_cache_t *warm)
{
    size_t limit = memrt__load_relaxed(&memrt__options.cache_limit);
    MEMRT__ASSERT(memrt__mapping_lists_bytes >= warm->lists.cached.bytes);
    size_t others = memrt__mapping_lists_bytes - warm->lists.cached.bytes;
    return limit > others ? limit - others : 0;
}

static bool is_shared_cache(const memrt__large_cache_t *warm)
{
    return warm == &memrt__large_cache_shared;
}

size_t memrt__cache_room_used(const memrt__large_cache_t *warm)
{
    return warm->in_use - warm->requested + (is_shared_cache(warm) ? memrt__page_heap_used() : 0);
}

/// Return the maximum of used and cached bytes together.
static size_t get_footprint_max(const memrt__large_cache_t *warm)
{
    return is_shared_cache(warm) ? warm->most_used + memrt__retention_budget() : warm->most_used;
}

size_t memrt__cache_room_max(const memrt__large_cache_t *warm)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_LARGE_CACHE);
    size_t spans = is_shared_cache(warm) ? memrt__page_heap_used() + memrt__page_heap_cached() : 0;
    size_t most = get_footprint_max(warm), taken = warm->in_use + spans;
    if (warm->closed || memrt__cache_room_decay(warm) == 0 || most <= taken) {
        return 0;
    }
    size_t limit = memrt__size_min(get_cache_limit(warm), get_remaining_limit(warm));
    return memrt__size_min(most - taken, limit);
}

bool memrt__cache_room_needs_pages(const memrt__large_cache_t *warm)
{
    size_t spans = memrt__page_heap_used() + memrt__page_heap_cached();
    return is_shared_cache(warm) && memrt__page_heap_aging() > MEMRT__RETENTION_MIN &&
           warm->in_use + spans > get_footprint_max(warm);
}

void memrt__cache_room_request(memrt__large_cache_t *warm, size_t bytes,
                               memrt__cached_mapping_t **excess)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_LARGE_CACHE);
    MEMRT__ASSERT(bytes != 0);
    warm->in_use += bytes;
    warm->requested += bytes;
    memrt__mapping_lists_shrink(&warm->lists, memrt__cache_room_max(warm), excess);
}

void memrt__cache_room_confirm(memrt__large_cache_t *warm, size_t bytes)
{
    if (!memrt__cache_room_lock(warm)) {
        memrt__cache_room_change_late(warm, 0, (size_t)0 - bytes);
        return;
    }
    MEMRT__ASSERT(warm->requested >= bytes && warm->in_use >= bytes);
    warm->requested -= bytes;
    warm->most_used = memrt__size_max(warm->most_used, memrt__cache_room_used(warm));
    memrt__unlock(MEMRT__RANK_LARGE_CACHE);
}

void memrt__cache_room_cancel(memrt__large_cache_t *warm, size_t bytes)
{
    if (!memrt__cache_room_lock(warm)) {
        memrt__cache_room_change_late(warm, (size_t)0 - bytes, (size_t)0 - bytes);
        return;
    }
    MEMRT__ASSERT(warm->requested >= bytes && warm->in_use >= bytes);
    warm->in_use -= bytes;
    warm->requested -= bytes;
    memrt__unlock(MEMRT__RANK_LARGE_CACHE);
}
