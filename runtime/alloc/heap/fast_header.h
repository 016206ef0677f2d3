#ifndef MEMRT_ALLOC_HEAP_FAST_HEADER_H
#define MEMRT_ALLOC_HEAP_FAST_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <memrt/meminfo.h>

#include "runtime/alloc/heap/size_class.h"
#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/base/compiler.h"
#include "runtime/thread/bin_layout.h"

/// Headers of the blocks that the fast paths allocate and free, and of unused blocks of their
/// classes.

/// log2 of the alignment of the blocks of the fast path.
#define MEMRT__FAST_ALIGN_LOG2 6

/// Bits of memrt_meminfo_t.flags that blocks of the fast path may have; block_layout.h has the
/// others.
#define MEMRT__FLAG_MEMINFO 1u      ///< counted as a MemInfo
#define MEMRT__FLAG_FAST (1u << 18) ///< pool block of its size class, without padding

/// Return the flags of a new block of the fast path.
static MEMRT__INLINE unsigned memrt__fast_flags(memrt_kind_t kind)
{
    return MEMRT__FLAG_FAST | (kind == MEMRT_KIND_BLOCK ? 0 : MEMRT__FLAG_MEMINFO);
}

/// Members `policy`, `kind`, `align_log2` and `flags` of a header: the state. The fast paths write
/// and compare the members as one word.
typedef struct memrt__state {
    uint16_t policy;
    uint8_t kind, align_log2;
    uint32_t flags;
} memrt__state_t;

#define MEMRT__STATE_AT offsetof(memrt_meminfo_t, policy)

_Static_assert(sizeof(memrt__state_t) == sizeof(size_t) &&
                   offsetof(memrt_meminfo_t, kind) == MEMRT__STATE_AT + 2 &&
                   offsetof(memrt_meminfo_t, align_log2) == MEMRT__STATE_AT + 3 &&
                   offsetof(memrt_meminfo_t, flags) == MEMRT__STATE_AT + 4,
               "the members lie together");

/// Return the state of new blocks of the fast path.
static inline size_t memrt__state_of(uint32_t account, memrt_kind_t kind)
{
    memrt__state_t members = {(uint16_t)account, (uint8_t)kind, MEMRT__FAST_ALIGN_LOG2,
                              memrt__fast_flags(kind)};
    size_t state;
    memcpy(&state, &members, sizeof(state));
    return state;
}

static inline void memrt__state_write(memrt_meminfo_t *mi, size_t state)
{
    memcpy((char *)mi + MEMRT__STATE_AT, &state, sizeof(state));
}

/// Return whether a block with one reference, which the caller holds, has a state. A thread that
/// finds the block in the live set may write the flags, but no state of a fast path has the flag of
/// listed blocks.
static MEMRT__INLINE bool memrt__state_equals(const memrt_meminfo_t *mi, size_t state)
{
    return memrt__word_equals((const size_t *)(const void *)((const char *)mi + MEMRT__STATE_AT),
                              state);
}

/// Header of an unused block with room for data. Some words of the header are equal in all blocks
/// of the fast path. Unused blocks in the thread caches and central lists keep these words, so that
/// an allocation on the fast path does not write them.
///
/// Blocks without a header at their start, such as blocks with a larger alignment, overwrite the
/// words. The free of the block writes the words again.

/// Return whether blocks of the class have a header followed by data at their start.
static inline bool memrt__class_has_cached_header(unsigned class)
{
    return class < MEMRT__CLASS_HEADER;
}

/// Write the words to the header of an unused block. The words of a tiny block are 0. No effect for
/// headers without data.
static inline void memrt__cached_header_write(unsigned class, void *block)
{
    memrt_meminfo_t *mi = block;
    if (class >= MEMRT__CLASS_TINY) {
        memset(block, 0, MEMRT__TINY_HEADER);
    } else if (memrt__class_has_cached_header(class)) {
        MEMRT__ASSERT((size_t)block % MEMRT_HEADER_SIZE == 0);
        mi->dtor = NULL;
        mi->data = mi + 1;
        mi->external_allocator = NULL;
        mi->bin = class; /* so that a free need not compute the class */
        mi->lead = MEMRT_HEADER_SIZE;
    }
}

/// Return whether the header of an unused block, or of a block of the fast path, has the words.
static inline bool memrt__cached_header_is_valid(const memrt_meminfo_t *mi)
{
    return mi->dtor == NULL && mi->data == mi + 1 && mi->external_allocator == NULL &&
           memrt__class_has_cached_header(mi->bin) && mi->lead == MEMRT_HEADER_SIZE;
}

/// Second word of the header of a tiny block: the size in the lowest 16 bits, then 16 bits of the
/// account, then a mark. The free of a tiny block subtracts the word of its home: the rest is the
/// size, if the mark and the account are equal.
#define MEMRT__TINY_LIVE 0xA5A5A501u   ///< mark of a live block without a MemInfo
#define MEMRT__TINY_SHARED 0xA5A5A502u ///< mark of a live block with a MemInfo
#define MEMRT__TINY_ACCOUNT_AT 16
#define MEMRT__TINY_MARK_AT 32

/// Return the word of a tiny block without a MemInfo, less the size.
static inline size_t memrt__tiny_word_of(uint32_t account)
{
    return (size_t)MEMRT__TINY_LIVE << MEMRT__TINY_MARK_AT | (size_t)account
                                                                 << MEMRT__TINY_ACCOUNT_AT;
}

#endif
