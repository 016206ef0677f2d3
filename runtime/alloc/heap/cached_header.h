#ifndef MEMRT_ALLOC_HEAP_CACHED_HEADER_H
#define MEMRT_ALLOC_HEAP_CACHED_HEADER_H

#include <memrt/meminfo.h>

#include "runtime/alloc/heap/size_class.h"
#include "runtime/base/check.h"

/// Header of an unused block with room for data. The words that are equal in all blocks of the fast
/// path are ready in each unused block of the thread caches and central lists, so that an
/// allocation on the fast path does not write these words.
///
/// Blocks without a header at their start, such as blocks with a larger alignment, overwrite the
/// words. The free of such a block makes the words ready again.

#define MEMRT__CACHED_ALIGN_LOG2 6

/// Return whether blocks of the class have a header followed by data at their start.
static inline bool memrt__class_has_cached_header(unsigned class)
{
    return class != 0 && class < MEMRT__CLASS_TINY;
}

/// Make the header of an unused block ready. Classes without such headers: no effect.
static inline void memrt__cached_header_write(unsigned class, void *block)
{
    memrt_meminfo_t *mi = block;
    if (memrt__class_has_cached_header(class)) {
        MEMRT__ASSERT((size_t)block % MEMRT_HEADER_SIZE == 0);
        mi->data = mi + 1;
        mi->external_allocator = NULL;
        mi->align_log2 = MEMRT__CACHED_ALIGN_LOG2;
        mi->trace = 0;
        mi->lead = MEMRT_HEADER_SIZE;
    }
}

/// Return whether the header of an unused block, or of a block of the fast path, is ready.
static inline bool memrt__cached_header_is_ready(const memrt_meminfo_t *mi)
{
    return mi->data == mi + 1 && mi->external_allocator == NULL &&
           mi->align_log2 == MEMRT__CACHED_ALIGN_LOG2 && mi->trace == 0 &&
           mi->lead == MEMRT_HEADER_SIZE;
}

#endif
