#include "runtime/alloc/heap/large_cache.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/alloc/heap/cache_room.h"
#include "runtime/alloc/heap/large_cache_purge.h"
#include "runtime/alloc/heap/mapping_lists.h"
#include "runtime/alloc/heap/pages/page_heap.h"
#include "runtime/alloc/heap/retention_budget.h"
#include "runtime/alloc/mapped.h"
#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/base/size.h"
#include "runtime/config/fault_injection.h"
#include "runtime/config/options.h"
#include "runtime/os/lock.h"
#include "runtime/os/mapping_table.h"
#include "runtime/os/os.h"

size_t memrt__large_cache_shortest = MEMRT__DECAY_NEVER;

/// Compute the bytes of a mapping. A block of a power of two has a page for its header in front, so
/// the steps apply to the size without a page.
bool memrt__large_cache_bytes(size_t size, size_t *bytes)
{
    size_t page = memrt__os_page_size();
    size_t rest = size > page ? size - page : page;
    size_t step =
        memrt__size_max(((size_t)1 << memrt__floor_log2(rest)) / MEMRT__MAPPING_STEPS, page);
    return memrt__size_round_up(rest, step, &rest) && memrt__size_add(rest, page, bytes);
}

/// Minimum bytes for lazy zeroing. From here on a reused, zeroed block gets fresh pages, which cost
/// nothing until the first touch. Below, clearing cached pages costs less than the page faults of a
/// program that touches all pages.
#define LAZY_FROM ((size_t)32 << 20)

/* Under the lock of rank LARGE_CACHE: */
static bool modes_differ; /* the mode of the process changed, so mappings may differ in advice */

static memrt__huge_t get_huge_mode(const memrt__large_cache_t *cache)
{
    return memrt__huge_of(memrt__load_relaxed(&cache->limits.huge_pages));
}

static bool follows_mode_of_process(const memrt__large_cache_t *cache)
{
    return memrt__load_relaxed(&cache->limits.huge_pages) == MEMRT__INHERIT;
}

static void update_shortest_decay(void)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_LARGE_CACHE);
    size_t shortest = MEMRT__DECAY_NEVER;
    for (memrt__large_cache_t *cache = memrt__large_cache_shared.next_other; cache != NULL;
         cache = cache->next_other) {
        if (cache->limits.decay != MEMRT__INHERIT && cache->limits.decay != 0) {
            shortest = memrt__size_min(shortest, cache->limits.decay);
        }
    }
    memrt__store_relaxed(&memrt__large_cache_shortest, shortest);
}

memrt__large_cache_t *memrt__large_cache_new(const memrt__limits_t *limits)
{
    memrt__large_cache_t *cache = memrt__fault_is_due() ? NULL : calloc(1, sizeof(*cache));
    if (cache != NULL) {
        cache->limits = *limits;
        memrt__lock(MEMRT__RANK_LARGE_CACHE);
        cache->next_other = memrt__large_cache_shared.next_other;
        memrt__large_cache_shared.next_other = cache;
        update_shortest_decay();
        memrt__unlock(MEMRT__RANK_LARGE_CACHE);
    }
    return cache;
}

void memrt__large_cache_place(memrt__large_cache_t *cache, memrt__map_fn map, memrt__place_fn place,
                              void *context)
{
    MEMRT__ASSERT(cache != &memrt__large_cache_shared && cache->in_use == 0);
    cache->map = map;
    cache->place = place;
    cache->place_context = context;
}

void memrt__large_cache_close(memrt__large_cache_t *cache)
{
    memrt__cached_mapping_t *excess = NULL;
    memrt__lock(MEMRT__RANK_LARGE_CACHE);
    cache->closed = true;
    memrt__mapping_lists_shrink(&cache->lists, 0, &excess);
    memrt__unlock(MEMRT__RANK_LARGE_CACHE);
    memrt__large_cache_unmap(excess);
}

void memrt__large_cache_delete(memrt__large_cache_t *cache)
{
    memrt__large_cache_close(cache);
    memrt__lock(MEMRT__RANK_LARGE_CACHE);
    memrt__cache_room_apply_late(cache);
    MEMRT__ASSERT(cache->in_use == 0 && cache->lists.cached.bytes == 0);
    MEMRT__ASSERT(cache != &memrt__large_cache_shared && cache->requested == 0);
    memrt__large_cache_t **link = &memrt__large_cache_shared.next_other;
    while (*link != cache) {
        MEMRT__ASSERT(*link != NULL);
        link = &(*link)->next_other;
    }
    *link = cache->next_other;
    update_shortest_decay();
    memrt__unlock(MEMRT__RANK_LARGE_CACHE);
    free(cache);
}

static bool place(const memrt__large_cache_t *cache, void *mapping, size_t bytes)
{
    return cache->place == NULL || cache->place(cache->place_context, mapping, bytes);
}

/// Map and place memory. NULL: out of memory, or not placed.
static void *map_placed(const memrt__large_cache_t *cache, size_t bytes, size_t align)
{
    memrt__huge_t huge = get_huge_mode(cache);
    void *mapping = cache->map == NULL ? memrt__mapped_new(bytes, align, huge)
                                       : cache->map(cache->place_context, bytes, align, huge);
    if (mapping != NULL && !place(cache, mapping, bytes)) {
        memrt__mapped_delete(mapping, bytes);
        mapping = NULL;
    }
    return mapping;
}

/// Map memory. On failure, retry after purging all free pages and cached mappings, because the
/// system may then have memory.
static void *map_or_purge(const memrt__large_cache_t *cache, size_t bytes, size_t align)
{
    memrt__retention_budget_update(memrt__os_now_ns());
    void *mapping = map_placed(cache, bytes, align);
    if (mapping == NULL && memrt__page_heap_purge(true) + memrt__large_cache_purge_all() != 0) {
        mapping = map_placed(cache, bytes, align);
    }
    return mapping;
}

/// Zero a mapping. The first page stays: the page was written, at the latest when the mapping was
/// cached.
static void zero_mapping(const memrt__large_cache_t *cache, void *mapping, size_t bytes)
{
    size_t page = memrt__os_page_size();
    MEMRT__ASSERT(bytes > page);
    bool lazy = bytes >= LAZY_FROM && cache->place == NULL &&
                memrt__os_discard((char *)mapping + page, bytes - page);
    memset(mapping, 0, lazy ? page : bytes);
}

/// Prepare a cached mapping for a request. NULL: the mapping could not be placed, and is cached
/// again.
static void *reuse_entry(memrt__large_cache_t *cache, memrt__cached_mapping_t *entry, bool zeroed)
{
    size_t bytes = entry->bytes;
    if (!place(cache, entry, bytes)) {
        memrt__large_cache_give(cache, entry, bytes);
        return NULL;
    }
    memrt__mapping_table_mark(entry, MEMRT__USE_BLOCK);
    if (entry->mixed) {
        memrt__mapped_advise_anew(entry, bytes, get_huge_mode(cache));
    }
    if (zeroed) {
        zero_mapping(cache, entry, bytes);
    }
    return entry;
}

/// Map without the cache, while a fork takes long.
static void *map_uncached(memrt__large_cache_t *cache, size_t bytes, size_t align)
{
    void *mapping = map_placed(cache, bytes, align);
    if (mapping != NULL) {
        memrt__cache_room_change_late(cache, bytes, 0);
    }
    return mapping;
}

/// If the system refuses, the addresses are lost.
void memrt__large_cache_drop(memrt__large_cache_t *cache, void *mapping, size_t bytes)
{
    memrt__mapped_delete(mapping, bytes);
    memrt__cache_room_change_late(cache, (size_t)0 - bytes, 0);
}

void *memrt__large_cache_take(memrt__large_cache_t *cache, size_t bytes, size_t align, bool zeroed)
{
    MEMRT__ASSERT(bytes % memrt__os_page_size() == 0 && memrt__is_power_of_two(align));
    memrt__cached_mapping_t *excess = NULL;
    bool purge = false;
    if (!memrt__cache_room_lock(cache)) {
        return map_uncached(cache, bytes, align);
    }
    memrt__cached_mapping_t *entry = memrt__mapping_lists_find(&cache->lists, bytes, align);
    if (entry != NULL) {
        MEMRT__ASSERT(entry->bytes == bytes && ((size_t)entry & (align - 1)) == 0);
        memrt__mapping_lists_extract(&cache->lists, entry);
        cache->in_use += bytes;
    } else {
        memrt__cache_room_request(cache, bytes, &excess);
        purge = memrt__cache_room_needs_pages(cache);
    }
    memrt__unlock(MEMRT__RANK_LARGE_CACHE);
    memrt__large_cache_unmap(excess);
    if (purge) {
        memrt__page_heap_purge(true);
    }
    if (entry != NULL) {
        return reuse_entry(cache, entry, zeroed);
    }
    void *mapping = map_or_purge(cache, bytes, align);
    if (mapping == NULL) {
        memrt__cache_room_cancel(cache, bytes);
    } else {
        memrt__cache_room_confirm(cache, bytes);
    }
    return mapping;
}

void memrt__large_cache_give(memrt__large_cache_t *cache, void *mapping, size_t bytes)
{
    memrt__cached_mapping_t *entry = mapping, *excess = NULL;
    if (!memrt__cache_room_lock(cache)) {
        memrt__large_cache_drop(cache, mapping, bytes);
        return;
    }
    MEMRT__ASSERT((size_t)mapping % memrt__os_page_size() == 0 && cache->in_use >= bytes);
    memrt__mapping_table_mark(mapping, MEMRT__USE_CACHED);
    *entry = (memrt__cached_mapping_t){.bytes = bytes, .since = memrt__os_now_ns()};
    entry->mixed = cache->mode_changed || (modes_differ && follows_mode_of_process(cache));
    cache->in_use -= bytes;
    memrt__mapping_lists_insert(&cache->lists, entry);
    memrt__mapping_lists_shrink(&cache->lists, memrt__cache_room_max(cache), &excess);
    memrt__unlock(MEMRT__RANK_LARGE_CACHE);
    memrt__large_cache_unmap(excess);
}

void *memrt__large_cache_resize(memrt__large_cache_t *cache, void *mapping, size_t old_bytes,
                                size_t new_bytes, bool may_move)
{
    MEMRT__ASSERT(cache->place == NULL);
    void *moved = memrt__os_remap(mapping, old_bytes, new_bytes, may_move);
    if (moved == NULL) {
        return NULL;
    }
    memrt__cached_mapping_t *excess = NULL;
    memrt__mapped_advise(moved, new_bytes, get_huge_mode(cache));
    if (!memrt__cache_room_lock(cache)) {
        memrt__cache_room_change_late(cache, new_bytes - old_bytes, 0);
        return moved;
    }
    MEMRT__ASSERT(cache->in_use >= old_bytes);
    cache->in_use -= old_bytes;
    memrt__cache_room_request(cache, new_bytes, &excess);
    memrt__unlock(MEMRT__RANK_LARGE_CACHE);
    memrt__cache_room_confirm(cache, new_bytes);
    memrt__large_cache_unmap(excess);
    return moved;
}

static void mark_entries_mixed(memrt__large_cache_t *cache)
{
    for (memrt__cached_mapping_t *entry = cache->lists.cached.oldest; entry != NULL;
         entry = entry->newer) {
        entry->mixed |= cache->mode_changed || follows_mode_of_process(cache);
    }
}

void memrt__large_cache_readvise(void)
{
    memrt__lock(MEMRT__RANK_LARGE_CACHE);
    modes_differ = true;
    for (memrt__large_cache_t *cache = &memrt__large_cache_shared; cache != NULL;
         cache = cache->next_other) {
        mark_entries_mixed(cache);
    }
    memrt__unlock(MEMRT__RANK_LARGE_CACHE);
}

void memrt__large_cache_change(memrt__large_cache_t *cache, const memrt__limits_t *limits)
{
    memrt__lock(MEMRT__RANK_LARGE_CACHE);
    MEMRT__ASSERT(cache != &memrt__large_cache_shared);
    if (memrt__load_relaxed(&cache->limits.huge_pages) != limits->huge_pages) {
        cache->mode_changed = true;
        mark_entries_mixed(cache);
    }
    memrt__limits_store(&cache->limits, limits);
    update_shortest_decay();
    memrt__unlock(MEMRT__RANK_LARGE_CACHE);
}

size_t memrt__large_cache_cached(const memrt__large_cache_t *cache)
{
    memrt__lock(MEMRT__RANK_LARGE_CACHE);
    size_t bytes = cache->lists.cached.bytes + cache->lists.stuck.bytes;
    memrt__unlock(MEMRT__RANK_LARGE_CACHE);
    return bytes;
}

void memrt__large_cache_sums(size_t *in_use, size_t *cached)
{
    *in_use = *cached = 0;
    memrt__lock(MEMRT__RANK_LARGE_CACHE);
    for (memrt__large_cache_t *cache = &memrt__large_cache_shared; cache != NULL;
         cache = cache->next_other) {
        memrt__cache_room_apply_late(cache);
        *in_use += cache->in_use - cache->requested;
        *cached += cache->lists.cached.bytes + cache->lists.stuck.bytes;
    }
    memrt__unlock(MEMRT__RANK_LARGE_CACHE);
}

#if MEMRT_DEBUG

static bool has_late_changes(const memrt__large_cache_t *cache)
{
    return (memrt__load_relaxed(&cache->late_in_use) |
            memrt__load_relaxed(&cache->late_requested)) != 0;
}

/// Check one cache. While late changes of a slow fork are not applied, the figures may be out of
/// order. Only the cache of the process has stuck mappings.
static bool is_cache_valid(const memrt__large_cache_t *cache)
{
    bool shared = cache == &memrt__large_cache_shared;
    return memrt__mapping_lists_is_valid(&cache->lists) &&
           MEMRT__HOLDS(has_late_changes(cache) || cache->requested <= cache->in_use) &&
           MEMRT__HOLDS(cache->in_use % memrt__os_page_size() == 0) &&
           MEMRT__HOLDS(!cache->closed || cache->lists.cached.bytes == 0) &&
           MEMRT__HOLDS(shared || cache->lists.stuck.oldest == NULL) &&
           MEMRT__HOLDS(!shared || (!cache->closed && cache->limits.decay == MEMRT__INHERIT));
}

bool memrt__large_cache_is_valid(void)
{
    size_t cached = 0, shortest = MEMRT__DECAY_NEVER;
    bool valid = true;
    memrt__lock(MEMRT__RANK_LARGE_CACHE);
    for (memrt__large_cache_t *cache = &memrt__large_cache_shared; valid && cache != NULL;
         cache = cache->next_other) {
        valid = is_cache_valid(cache);
        cached += cache->lists.cached.bytes;
        if (cache->limits.decay != MEMRT__INHERIT && cache->limits.decay != 0) {
            shortest = memrt__size_min(shortest, cache->limits.decay);
        }
    }
    valid = valid && MEMRT__HOLDS(memrt__mapping_lists_bytes == cached) &&
            MEMRT__HOLDS(memrt__large_cache_shortest == shortest);
    memrt__unlock(MEMRT__RANK_LARGE_CACHE);
    return valid;
}

#endif
