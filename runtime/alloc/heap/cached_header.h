#ifndef MEMRT_ALLOC_HEAP_CACHED_HEADER_H
#define MEMRT_ALLOC_HEAP_CACHED_HEADER_H

#include <memrt/meminfo.h>

#include "runtime/alloc/heap/size_class.h"
#include "runtime/base/check.h"

/// Header of an unused block with room for data. Some words of the header are equal in all blocks
/// of the fast path. Unused blocks in the thread caches and central lists keep these words, so that
/// an allocation on the fast path does not write them.
///
/// Blocks without a header at their start, such as blocks with a larger alignment, overwrite the
/// words. The free of the block writes the words again.

#define MEMRT__CACHED_ALIGN_LOG2 6

/// Return whether blocks of the class have a header followed by data at their start.
static inline bool memrt__class_has_cached_header(unsigned class)
{
    return class != 0 && class < MEMRT__CLASS_TINY;
}

/// Write the words to the header of an unused block. No effect for classes without a header and
/// data.
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

/// Return whether the header of an unused block, or of a block of the fast path, has the words.
static inline bool memrt__cached_header_is_valid(const memrt_meminfo_t *mi)
{
    return mi->data == mi + 1 && mi->external_allocator == NULL &&
           mi->align_log2 == MEMRT__CACHED_ALIGN_LOG2 && mi->trace == 0 &&
           mi->lead == MEMRT_HEADER_SIZE;
}

#endif
