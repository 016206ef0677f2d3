#ifndef MEMRT_THREAD_BIN_LAYOUT_H
#define MEMRT_THREAD_BIN_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Layout of a bin of the thread cache. runtime/alloc/heap/thread_cache.h takes and gives blocks.

/// Number of size classes, as defined in size_class.h.
#define MEMRT__CLASSES 100

/// Thread cache of one size class: a stack of free blocks, the most recently freed block on top.
///
/// Only the owner writes a bin, except for `limit`: another thread sets `limit` to 0 to ask for the
/// cached blocks. Invariant: count <= limit, except during a free and after the request.
typedef struct memrt__bin {
    size_t head;    ///< address of the first block, 0 for none
    size_t count;   ///< blocks in the list
    size_t limit;   ///< relaxed; number of blocks at which the bin gives some away
    uint32_t bytes; ///< fixed; size of one block
    bool ran_empty; ///< true: the bin ran empty since the limit last grew
} memrt__bin_t;

#endif
