#ifndef MEMRT_ALLOC_HEAP_CACHE_ROOM_H
#define MEMRT_ALLOC_HEAP_CACHE_ROOM_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/alloc/heap/mapping_lists.h"
#include "runtime/config/options.h"

/// Cache room: the figures of a large-object cache. The figures are the bytes in use, and the bytes
/// that the cache may keep beside the bytes in use.

typedef struct memrt__large_cache memrt__large_cache_t;

/// Map memory for a cache, as memrt__mapped_new() does.
typedef void *(*memrt__map_fn)(void *context, size_t bytes, size_t align, memrt__huge_t huge);

/// Place the pages of a mapping that a cache hands out, new or reused. False: the request fails.
/// Called without a lock.
typedef bool (*memrt__place_fn)(void *context, void *mapping, size_t bytes);

/// Large-object cache. Under the lock of rank LARGE_CACHE, except for `limits` and the fields of
/// late changes.
struct memrt__large_cache {
    memrt__mapping_lists_t lists;
    size_t in_use,
        requested;    ///< bytes; `requested`: part of in_use that the system has not given yet
    size_t most_used; ///< high-water mark of memrt__cache_room_used()
    bool closed;
    bool mode_changed;      ///< mappings may differ in advice, because limits.huge_pages changed
    memrt__limits_t limits; ///< written under the lock, read without
    memrt__map_fn map;      ///< fixed; NULL: memrt__mapped_new()
    memrt__place_fn place;  ///< fixed; NULL: mappings need no placement
    void *place_context;    ///< fixed; first argument of `map` and `place`
    size_t late_in_use, late_requested; ///< any thread, relaxed add; changes not yet applied
    memrt__large_cache_t *next_other;   ///< list of all caches, from memrt__large_cache_shared on
};

/// Cache of all policies without their own limits.
extern memrt__large_cache_t memrt__large_cache_shared;

/// Return the decay of a cache in milliseconds.
size_t memrt__cache_room_decay(const memrt__large_cache_t *cache);

/// Record a change while a fork takes long. The next thread with the lock applies the change.
void memrt__cache_room_change_late(memrt__large_cache_t *cache, size_t in_use, size_t requested);

/// Apply recorded changes. Under the lock of rank LARGE_CACHE.
void memrt__cache_room_apply_late(memrt__large_cache_t *cache);

/// Take the lock and apply recorded changes. Returns false, without the lock, while a fork takes
/// long.
bool memrt__cache_room_lock(memrt__large_cache_t *cache);

/// Return the bytes in use: mappings and, for the cache of the process, spans.
size_t memrt__cache_room_used(const memrt__large_cache_t *cache);

/// Return the maximum of cached bytes, beside the bytes in use and the free pages of spans.
size_t memrt__cache_room_max(const memrt__large_cache_t *cache);

/// Return true if a new mapping would make the process larger than before, although the page heap
/// has more than MEMRT__RETENTION_MIN bytes to give back.
bool memrt__cache_room_needs_pages(const memrt__large_cache_t *cache);

/// Count `bytes` requested from the system as in use, and extract the cached mappings beyond the
/// new room.
void memrt__cache_room_request(memrt__large_cache_t *cache, size_t bytes,
                               memrt__cached_mapping_t **excess);

/// Confirm that the system has given the bytes counted by memrt__cache_room_request().
void memrt__cache_room_confirm(memrt__large_cache_t *cache, size_t bytes);

/// Undo the counts of memrt__cache_room_request() for bytes that the system did not give.
void memrt__cache_room_cancel(memrt__large_cache_t *cache, size_t bytes);

#endif
