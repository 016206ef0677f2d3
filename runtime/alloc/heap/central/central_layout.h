#ifndef MEMRT_ALLOC_HEAP_CENTRAL_CENTRAL_LAYOUT_H
#define MEMRT_ALLOC_HEAP_CENTRAL_CENTRAL_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/alloc/heap/span.h"
#include "runtime/base/check.h"
#include "runtime/base/compiler.h"
#include "runtime/os/lock.h"

/// Fields of the central lists, for central_list.c and its checks.

/// Central list of one class. Invariant: a span is in the list if and only if the span has a block
/// to give.
typedef struct memrt__central {
    _Alignas(MEMRT__CACHE_LINE) memrt__span_t *spans; ///< under the class's lock
    size_t unused; ///< under the lock; blocks in the `free` lists of spans
    size_t units;  ///< under the lock; units in spans of the class
    size_t taken;  ///< under the lock; blocks in use or cached by threads
} memrt__central_t;

extern memrt__central_t memrt__centrals[MEMRT__CLASSES];

static inline memrt__rank_t memrt__central_lock_of(unsigned class)
{
    MEMRT__ASSERT(class < MEMRT__CLASSES);
    unsigned locks = MEMRT__RANK_CLASS_LAST - MEMRT__RANK_CLASS + 1;
    return (memrt__rank_t)(MEMRT__RANK_CLASS + class % locks);
}

static inline bool memrt__span_has_block(const memrt__span_t *span)
{
    return span->free != NULL || span->fresh != span->end;
}

/// Return the length of the `free` list of a span without used blocks.
static inline size_t memrt__span_count_free(const memrt__span_t *span)
{
    return (size_t)(span->fresh - span->base) / span->bytes;
}

#endif
