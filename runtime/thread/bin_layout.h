#ifndef MEMRT_THREAD_BIN_LAYOUT_H
#define MEMRT_THREAD_BIN_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Layout of a bin of the thread cache. The code of bins is in runtime/alloc/heap/thread_cache.h.

/// Number of size classes. A static assertion in runtime/alloc/heap/size_class.h checks the number.
#define MEMRT__CLASSES 100

/// Subtracted from `room`; the lower half of the word still has the number of blocks.
#define MEMRT__DRAIN_REQUEST ((size_t)1 << 32)

/// Cached free blocks of one size class: a linked stack, with the most recently freed block on top.
///
/// Only the owning thread writes a bin, except for `room`. Another thread subtracts
/// MEMRT__DRAIN_REQUEST from `room` to request a drain: the next free or refill of the owner then
/// returns all cached blocks to the central list. The owner changes `room` without a lock, so that
/// a request may be lost, but no change of the owner.
typedef struct memrt__bin {
    size_t head;    ///< address of the top block; 0: the bin is empty
    size_t room;    ///< relaxed; blocks that a free may still add before the overflow function is
                    ///< called: `limit` less the number of cached blocks, and requests
    size_t limit;   ///< own, relaxed; blocks that the bin may keep
    uint32_t bytes; ///< fixed; size of one block
    bool ran_empty; ///< whether the bin ran empty since an overflow last raised the limit
} memrt__bin_t;

#endif
