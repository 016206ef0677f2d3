#ifndef MEMRT_THREAD_BIN_LAYOUT_H
#define MEMRT_THREAD_BIN_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

/// Layout of the bins of a thread cache. The code of bins is in runtime/alloc/heap/thread_cache.h.

/// Number of size classes. A static assertion in runtime/alloc/heap/size_class.h checks the number.
#define MEMRT__CLASSES 100

/// Subtracted from `room`; the lower half of the word still has the number of blocks.
#define MEMRT__DRAIN_REQUEST ((size_t)1 << 32)

/// Bins: the cached free blocks of each size class. A bin is a linked stack, with the most recently
/// freed block on top. The members are arrays by class, so that the fast paths address each word of
/// a bin with the class as a scaled index.
///
/// Only the owning thread writes a bin, except for `room`. Another thread subtracts
/// MEMRT__DRAIN_REQUEST from `room` to request a drain: the next free or refill of the owner then
/// returns all cached blocks to the central list. The owner changes `room` without a lock, so that
/// a request may be lost, but no change of the owner.
typedef struct memrt__bins {
    size_t limit[MEMRT__CLASSES];   ///< own, relaxed; blocks that the bin may keep
    bool ran_empty[MEMRT__CLASSES]; ///< own; whether the bin ran empty since an overflow last
                                    ///< raised the limit
    size_t head[MEMRT__CLASSES];    ///< own, release; address of the top block; 0: the bin is empty
    size_t room[MEMRT__CLASSES];    ///< relaxed; blocks that a free may still add before the
                                    ///< overflow function is called: `limit` less the number of
                                    ///< cached blocks, and requests
} memrt__bins_t;

#endif
