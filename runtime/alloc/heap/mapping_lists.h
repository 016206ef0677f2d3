#ifndef MEMRT_ALLOC_HEAP_MAPPING_LISTS_H
#define MEMRT_ALLOC_HEAP_MAPPING_LISTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/check.h"

/// Mapping lists: the cached mappings of one large-object cache, by size and by age. All functions
/// run under the lock of rank LARGE_CACHE, and call the system for no mapping.

/// Sizes of mappings from one power of two to the next.
#define MEMRT__MAPPING_STEPS 8u
#define MEMRT__MAPPING_LISTS (64 * MEMRT__MAPPING_STEPS)

/// Header of a cached mapping, stored at the start of the mapping.
typedef struct memrt__cached_mapping {
    struct memrt__cached_mapping *next, *prev;   ///< mappings of the same size, newest first
    struct memrt__cached_mapping *older, *newer; ///< mappings of the same queue, by time of caching
    size_t bytes;
    uint64_t since; ///< memrt__os_now_ns()
    bool mixed;     ///< the huge page advice may differ from the current mode
    bool stuck;     ///< the system refused to unmap the mapping
} memrt__cached_mapping_t;

typedef struct memrt__mapping_queue {
    memrt__cached_mapping_t *oldest, *newest;
    size_t bytes;
} memrt__mapping_queue_t;

/// Cached mappings of one cache. `stuck`: reused like mappings in `cached`, but not unmapped before
/// a retry.
typedef struct memrt__mapping_lists {
    memrt__cached_mapping_t *by_size[MEMRT__MAPPING_LISTS];
    memrt__mapping_queue_t cached; ///< by age
    memrt__mapping_queue_t stuck;  ///< by age
} memrt__mapping_lists_t;

/// Bytes in all lists of the process, without stuck mappings. Written under the lock, read without.
extern size_t memrt__mapping_lists_bytes;

/// Add a mapping as the newest mapping, and remove any mapping.
void memrt__mapping_lists_insert(memrt__mapping_lists_t *lists, memrt__cached_mapping_t *entry);
void memrt__mapping_lists_extract(memrt__mapping_lists_t *lists, memrt__cached_mapping_t *entry);

/// Return the newest mapping of exactly `bytes` at a multiple of `align`, or NULL.
memrt__cached_mapping_t *memrt__mapping_lists_find(const memrt__mapping_lists_t *lists,
                                                   size_t bytes, size_t align);

/// Move the oldest mappings to `out` until at most `room` bytes are cached.
void memrt__mapping_lists_shrink(memrt__mapping_lists_t *lists, size_t room,
                                 memrt__cached_mapping_t **out);

/// Move the mappings cached before `then` to `out`.
void memrt__mapping_lists_move_old(memrt__mapping_lists_t *lists, uint64_t then,
                                   memrt__cached_mapping_t **out);

#if MEMRT_DEBUG
/// Return whether the invariants of the lists of one cache hold.
bool memrt__mapping_lists_is_valid(const memrt__mapping_lists_t *lists);
#endif

#endif
