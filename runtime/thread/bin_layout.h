#ifndef MEMRT_THREAD_BIN_LAYOUT_H
#define MEMRT_THREAD_BIN_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Layout of a bin of the thread cache. The code of bins is in runtime/alloc/heap/thread_cache.h.

/// Number of size classes. A static assertion in runtime/alloc/heap/size_class.h checks the number.
#define MEMRT__CLASSES 100

/// Cached free blocks of one size class: a linked stack, with the most recently freed block on top.
///
/// Only the owning thread writes a bin, except for `limit`. Another thread sets `limit` to 0 to
/// request a drain: the next free or refill of the owner then returns all cached blocks to the
/// central list. Invariant: count <= limit, except during a free and from a request to the drain.
typedef struct memrt__bin {
    size_t head;    ///< address of the top block; 0: the bin is empty
    size_t count;   ///< number of cached blocks
    size_t limit;   ///< relaxed; a free into a bin with `limit` blocks calls the overflow function
    uint32_t bytes; ///< fixed; size of one block
    bool ran_empty; ///< whether the bin ran empty since an overflow last raised the limit
} memrt__bin_t;

#endif
