#ifndef MEMRT_MEMINFO_BLOCK_LAYOUT_H
#define MEMRT_MEMINFO_BLOCK_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/cuda.h>
#include <memrt/meminfo.h>

#include "runtime/alloc/heap/fast_header.h"
#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/event/block_event.h"

/// Layout of a block: flags in the header, and offsets and sizes around the header. This header
/// accesses no memory but the header of a block.

/// Bits of memrt_meminfo_t.flags, besides the bits in fast_header.h, and those of observers in
/// block_event.h.
#define MEMRT__FLAG_READONLY 2u  ///< made with the `readonly` option
#define MEMRT__FLAG_PROMOTED 64u ///< a block that was later counted as a MemInfo
#define MEMRT__FLAG_TINY 128u    ///< MemInfo of a tiny block: a separate header without data
#define MEMRT__FLAG_DATA_BLOCK                                                                     \
    (1u << 16)                          ///< data of a resizable MemInfo, which reports list instead
#define MEMRT__FLAG_BARE (1u << 19)     ///< block of the heap with a header alone
#define MEMRT__FLAG_RESERVED (1u << 20) ///< data with reserved addresses: never moves
#define MEMRT__FLAG_GUARDED (1u << 21)  ///< block between guard pages
#define MEMRT__FLAG_WEAK (1u << 22)     ///< a weak handle was made; never cleared
#define MEMRT__FLAG_FROZEN (1u << 23)   ///< frozen pages may exist: the free makes them writable
#define MEMRT__FLAG_DEVICE MEMRT_FLAG_DEVICE ///< device memory; the host must not access the data

_Static_assert(((MEMRT__FLAG_FROZEN | MEMRT__FLAG_WEAK | MEMRT__FLAG_GUARDED |
                 MEMRT__FLAG_RESERVED | MEMRT__FLAG_BARE) &
                (MEMRT__FLAG_DATA_BLOCK | MEMRT__FLAG_DEVICE | MEMRT__FLAG_FAST |
                 MEMRT__FLAG_KNOWN | 0xFFu)) == 0,
               "the flags of three headers do not share bits");

/// Minimum of bytes before the shift in a block whose data is shifted. The header must not
/// overlay the first words of the block, where an unused block has the link of the free list.
#define MEMRT__OFFSET_LEAD ((size_t)128)

/// Divisor of the address of each header, for atomic accesses.
#define MEMRT__HEADER_ALIGN 8u

/// Layout of a block: offsets and sizes in bytes.
typedef struct memrt__block_layout {
    size_t lead;  ///< bytes from the start of the block to the data
    size_t align; ///< alignment of the start, and of the data without its shift
    size_t bytes; ///< size of the whole block
    bool guarded; ///< set by memrt__block_memory_alloc(): the block is between guard pages
} memrt__block_layout_t;

/// Return the distance of data from the multiple of the alignment before it: MEMRT__ALIGN_OFFSET
/// for blocks of this alignment, else what the `align_offset` of memrt_new_options_t needs.
static inline size_t memrt__block_shift(size_t alignment, size_t align_offset)
{
    return alignment == MEMRT__ALIGN_OFFSET ? MEMRT__ALIGN_OFFSET
                                            : ((size_t)0 - align_offset) & (alignment - 1);
}

/// Return the shift of the data of an existing block. Data from an external allocator has none.
static inline size_t memrt__block_shift_of(const memrt_meminfo_t *mi)
{
    size_t align = (size_t)1 << mi->align_log2;
    align = align < MEMRT_ALIGN_MIN ? MEMRT_ALIGN_MIN : align;
    return mi->external_allocator == NULL ? mi->lead & (align - 1) : 0;
}

/// Compute the layout of a block. Headers without data have no shift. False: the block would have
/// more than PTRDIFF_MAX bytes.
bool memrt__block_layout_compute(memrt_kind_t kind, size_t size, size_t alignment, size_t shift,
                                 memrt__block_layout_t *out);

/// Compute the layout that an existing block has after a resize. False as above.
bool memrt__block_layout_resize(const memrt_meminfo_t *mi, size_t size, memrt__block_layout_t *out);

/// Return the layout of an existing block. The requested alignment and the shift, kept in the
/// header, give the same layout again.
memrt__block_layout_t memrt__block_layout_of(const memrt_meminfo_t *mi);

/// Return the bytes requested from the allocator beyond header and data, for a block of `bytes`.
/// Rounding to a size class is not included.
size_t memrt__block_extra_bytes(const memrt_meminfo_t *mi, size_t bytes);

static inline bool memrt__has_data(memrt_kind_t kind)
{
    return kind == MEMRT_KIND_INLINE || kind == MEMRT_KIND_BLOCK;
}

/// Return the header of a data pointer of memrt. No other code computes this address.
/// Not for tiny blocks, which memrt__is_tiny() detects.
static inline memrt_meminfo_t *memrt__block_of(const void *data)
{
    return (memrt_meminfo_t *)((uintptr_t)data - MEMRT_HEADER_SIZE);
}

/// Member `bin` of a block that is not for the fast path. The value shows writes before the data.
#define MEMRT__NO_BIN 0xB10CB10Cu

/// Return the member `bin` for a block in no event trace: the size class for a block of the fast
/// path, else MEMRT__NO_BIN.
static inline uint32_t memrt__block_bin(const memrt_meminfo_t *mi)
{
    if ((memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_FAST) == 0) {
        return MEMRT__NO_BIN;
    }
    return memrt__has_data((memrt_kind_t)mi->kind) ? memrt__class_of_data(mi->size)
                                                   : MEMRT__CLASS_HEADER;
}

/// Return whether a block is only the data of a resizable MemInfo and was never promoted to a
/// MemInfo itself. find and live skip such blocks.
static inline bool memrt__block_is_part(const memrt_meminfo_t *mi)
{
    unsigned both = MEMRT__FLAG_DATA_BLOCK | MEMRT__FLAG_MEMINFO;
    return (memrt__flags_load_relaxed(&mi->flags) & both) == MEMRT__FLAG_DATA_BLOCK;
}

/// Write the lead of shifted data to the start of the block, for memrt__lookup_locate(): a search
/// knows the start of a block, but not the shift.
static inline void memrt__block_mark_shift(char *start, const memrt__block_layout_t *layout)
{
    if (layout->lead > layout->align) {
        *(size_t *)(void *)start = layout->lead;
    }
}

/// Return the address that the allocator of a block returned.
static inline char *memrt__block_start(const memrt_meminfo_t *mi)
{
    return (char *)(uintptr_t)mi + MEMRT_HEADER_SIZE - mi->lead;
}

/// Return whether a block has reserved addresses behind its data.
static inline bool memrt__block_is_reserved(const memrt_meminfo_t *mi)
{
    return (memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_RESERVED) != 0;
}

/// Set the data pointer and size in the header of a block. The stores are relaxed atomics, because
/// a thread that walks the live set may read both words at the same time.
static inline void memrt__block_set_data(memrt_meminfo_t *mi, void *data, size_t size)
{
    memrt__store_relaxed((size_t *)&mi->data, (size_t)data);
    memrt__store_relaxed(&mi->size, size);
}

/// Set the size of data that keeps its address: other holders may read the data pointer meanwhile.
static inline void memrt__block_set_size(memrt_meminfo_t *mi, size_t size)
{
    memrt__store_relaxed(&mi->size, size);
}

/// Set the count of an unpublished or claimed block to 1. The release store pairs with the acquire
/// in memrt__meminfo_try_acquire().
static inline memrt_meminfo_t *memrt__block_publish(memrt_meminfo_t *mi)
{
    MEMRT__ASSERT(mi->kind >= MEMRT_KIND_INLINE && mi->kind <= MEMRT_KIND_BLOCK);
    memrt__store_release(&mi->refct, 1);
    return mi;
}

#endif
