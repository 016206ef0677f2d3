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

/// Headers of fast-path blocks: words that the fast paths write or compare at once. A fast-path
/// block is a heap block of a size class without padding: the header, then the data, if any.
///
/// - State word: account, kind, alignment and flags of a live block.
/// - Cached header: the other constant words. Unused blocks keep these words from free to
///   allocation, so that an allocation on the fast path does not write them.
/// - Tiny word: size, account and mark of a tiny block, whose header has 16 bytes.
///
/// Invariant: an unused block of a class with a cached header has the words of
/// memrt__cached_header_is_valid(), and an unused tiny block has a header of zeros.

/// log2 of the alignment of fast-path blocks.
#define MEMRT__FAST_ALIGN_LOG2 6

/// Bits of memrt_meminfo_t.flags that fast-path blocks may have; block_layout.h has the others.
#define MEMRT__FLAG_MEMINFO 1u      ///< counted as a MemInfo
#define MEMRT__FLAG_FAST (1u << 18) ///< fast-path block

/// Return the flags of a new fast-path block.
static MEMRT__INLINE unsigned memrt__fast_flags(memrt_kind_t kind)
{
    return MEMRT__FLAG_FAST | (kind == MEMRT_KIND_BLOCK ? 0 : MEMRT__FLAG_MEMINFO);
}

/* --- State word. --- */

/// State of a block: the members `policy`, `kind`, `align_log2` and `flags` of the header, which
/// lie in one word.
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
               "the members fill one word of the header, in the order of memrt__state_t");

/// Return the state of new fast-path blocks.
static inline size_t memrt__state_of(uint32_t account, memrt_kind_t kind)
{
    memrt__state_t members = {(uint16_t)account, (uint8_t)kind, MEMRT__FAST_ALIGN_LOG2,
                              memrt__fast_flags(kind)};
    size_t state;
    memcpy(&state, &members, sizeof(state));
    return state;
}

/// Write the state into a header.
static inline void memrt__state_write(memrt_meminfo_t *mi, size_t state)
{
    memcpy((char *)mi + MEMRT__STATE_AT, &state, sizeof(state));
}

/// Return whether the state of a block equals `state`, a state of memrt__state_of(). The caller
/// holds the only reference. Another thread writes the flags only of a block in the live set. Such
/// a block has a flag that no `state` has, so the result is false in any case.
static MEMRT__INLINE bool memrt__state_equals(const memrt_meminfo_t *mi, size_t state)
{
    return memrt__word_equals((const size_t *)(const void *)((const char *)mi + MEMRT__STATE_AT),
                              state);
}

/* --- Cached header. ---
   A block whose header is not at its start, for example with a larger alignment, overwrites the
   words of the cached header. The free of the block writes the words again. */

/// Return whether unused blocks of the class have a cached header: neither a header alone nor tiny.
static inline bool memrt__class_has_cached_header(unsigned class)
{
    return class < MEMRT__CLASS_HEADER;
}

/// Write the cached header into an unused block. The header of a tiny block becomes 0. No effect
/// for the class of a header alone.
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

/// Return whether the cached header of an unused block, or of a fast-path block without a
/// destructor, has its constant words.
static inline bool memrt__cached_header_is_valid(const memrt_meminfo_t *mi)
{
    return mi->dtor == NULL && mi->data == mi + 1 && mi->external_allocator == NULL &&
           memrt__class_has_cached_header(mi->bin) && mi->lead == MEMRT_HEADER_SIZE;
}

/* --- Tiny word. --- */

/// Second word of the header of a tiny block: the size in bits 0 to 15, the account in bits 16 to
/// 31, and a mark above. A free subtracts the word that its thread expects, which has size 0. The
/// difference is the size of the block, if account and mark are as expected, and otherwise larger
/// than any tiny size.
#define MEMRT__TINY_LIVE 0xA5A5A501u   ///< mark of a live block without a MemInfo
#define MEMRT__TINY_SHARED 0xA5A5A502u ///< mark of a live block with a MemInfo
#define MEMRT__TINY_ACCOUNT_AT 16
#define MEMRT__TINY_MARK_AT 32

/// Return the word of a tiny block without a MemInfo, with size 0.
static inline size_t memrt__tiny_word_of(uint32_t account)
{
    return (size_t)MEMRT__TINY_LIVE << MEMRT__TINY_MARK_AT | (size_t)account
                                                                 << MEMRT__TINY_ACCOUNT_AT;
}

#endif
