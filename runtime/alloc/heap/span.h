#ifndef MEMRT_ALLOC_HEAP_SPAN_H
#define MEMRT_ALLOC_HEAP_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/meminfo.h>

#include "runtime/alloc/heap/size_class.h"
#include "runtime/base/check.h"
#include "runtime/base/compiler.h"

/// Spans: runs of units of one segment, for blocks of one size class.

#define MEMRT__UNIT ((size_t)8 << 10)
#define MEMRT__SEGMENT ((size_t)4 << 20)
#define MEMRT__SPAN_MAX ((size_t)2 << 20) ///< bytes

/// A run of units and the blocks in it.
///
///     | handed out before: in use, cached by a thread, or in `free` | never handed out |
///     ^ base                                                        ^ fresh        end ^
///
/// A block of MEMRT__OWN_SPAN_FROM bytes or more has a span for itself, and begins
/// memrt__start_offset() bytes after the first unit.
///
/// Between base and fresh lie `used` blocks plus the blocks in `free`. Fixed once the span is set
/// up: base, end, bytes, class, units, clean; but a span for one block may change its length and
/// class together. All other fields are under the lock of the class.
typedef struct memrt__span {
    struct memrt__span *next, *prev; ///< spans of the class with a block to give
    char *base, *end;
    char *fresh;   ///< first block never handed out
    void *free;    ///< blocks given back, linked by memrt__block_next()
    size_t bytes;  ///< bytes of a block
    uint32_t used; ///< blocks in use or cached by a thread
    uint16_t units;
    uint8_t class;
    bool detoured; ///< made during a fork, and not yet known to the class
    bool clean;    ///< units unused since the system gave them, so fresh blocks are zero
} memrt__span_t;

/// Maximum of memrt__start_offset(), and log2 of the bytes of a page.
#define MEMRT__START_MAX ((size_t)960)
#define MEMRT__PAGE_LOG2 12

/// Return the bytes between the first page of a span for one block, or of a mapping, and the block:
/// a multiple of 64, by address. Blocks that all begin at the same place of a page compete for the
/// same lines of the first-level cache when a program reads them side by side.
static inline size_t memrt__start_offset(const void *pages)
{
    uint64_t page = (uintptr_t)pages >> MEMRT__PAGE_LOG2;
    return (size_t)(page * MEMRT__HASH_FACTOR >> 60) * 64; /* spreads near pages */
}

/// Return the first page of the span for one block, or of the mapping, that has the block.
static inline void *memrt__start_of_pages(const void *block)
{
    return (void *)((uintptr_t)block & ~(((uintptr_t)1 << MEMRT__PAGE_LOG2) - 1));
}

/// Links between unused blocks. The link is the third word of a block. The two words before hold
/// what a second free reads: the reference count of a block, which stays 0, or the header of a tiny
/// block.
///
/// A link is encoded by a random key with the highest bit set. No address has this bit, so a link
/// that other code has overwritten with an address or a small number has the bit when decoded.
/// The key has a cache line of its own, because each allocation and free reads the key.
typedef struct memrt__link {
    _Alignas(MEMRT__CACHE_LINE) size_t key;
} memrt__link_t;

extern MEMRT__HIDDEN memrt__link_t memrt__link;

/// Choose the key. No link may exist yet.
void memrt__link_start(void);

/// Return whether a decoded link is an address or NULL.
static inline bool memrt__link_is_valid(const void *next)
{
    return (ptrdiff_t)(uintptr_t)next >= 0;
}

/// Abort: the decoded link `next` is not valid.
MEMRT__COLD _Noreturn void memrt__link_refuse(const void *next);

/// Return the decoded link of an unused block; the caller checks the link. The word is read and
/// written as a pointer, like the member of a header at the same place, so that the compiler keeps
/// the order.
static inline void *memrt__link_read(const void *block)
{
    return (void *)((size_t)((void *const *)block)[2] ^ memrt__link.key);
}

/// Return the next block in the list of an unused block, or NULL. Aborts if the link is not valid.
static inline void *memrt__block_next(const void *block)
{
    void *next = memrt__link_read(block);
    if (MEMRT__UNLIKELY(!memrt__link_is_valid(next))) {
        memrt__link_refuse(next);
    }
    return next;
}

static inline void memrt__block_set_next(void *block, const void *next)
{
    ((void **)block)[2] = (void *)((size_t)next ^ memrt__link.key);
}

/// Return the maximum bytes of a span for blocks of `bytes`: at least eight blocks, or one block of
/// MEMRT__OWN_SPAN_FROM bytes or more. Each of these blocks goes back to the page heap alone.
size_t memrt__span_bytes_max(size_t bytes);

/// Set up a new span with base and units for blocks of a class.
void memrt__span_init(memrt__span_t *span, unsigned class);

/// Change the class of a span with a single block in use, after a change of its units. The block
/// keeps its address.
void memrt__span_change_class(memrt__span_t *span, unsigned class);

#if MEMRT_DEBUG
/// Return whether the invariants of a span hold. Under the lock of the class.
bool memrt__span_is_valid(const memrt__span_t *span);
#endif

#endif
