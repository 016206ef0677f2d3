#ifndef MEMRT_MEMINFO_BLOCK_MEMORY_H
#define MEMRT_MEMINFO_BLOCK_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include <memrt/meminfo.h>

#include "runtime/config/options.h"
#include "runtime/meminfo/block_layout.h"
#include "runtime/observe/tracking.h"
#include "runtime/policy/policy.h"

/// Memory of blocks: from the allocator of a policy, from a guard, from an external allocator, or
/// with reserved addresses.
/// Nothing is counted, and no header is written.

/// Properties of a block to allocate.
typedef struct memrt__block_request {
    memrt_policy_t *policy;     ///< the caller holds a reference
    size_t size;                ///< bytes of data in the block
    size_t alignment;           ///< power of two; 0: alignment of the policy
    size_t align_offset;        ///< as in memrt_new_options_t
    memrt_kind_t kind;          ///< adopted and resizable blocks have no data in the block
    bool zeroed;                ///< whether to zero the data
    bool is_data_block;         ///< whether the block is the data of a resizable MemInfo
    bool moves;                 ///< whether the block replaces another block, in a resize
    bool once;                  ///< one attempt: without reclaim, and without a failure event
    size_t behind;              ///< bytes of data that belong to a header without data
    memrt__alloc_event_t event; ///< sampling weight and site for the live set
    size_t reserve; ///< bytes of addresses to reserve for the data; 0: allocator of the policy
    memrt_external_allocator_t *external; ///< NULL: allocator of the policy
} memrt__block_request_t;

/// Allocate the memory of a block; returns the start of the block. An external allocator guarantees
/// no alignment, so `layout` then gets the lead and size of the result. A block that is due for
/// guard pages and gets none is an ordinary block.
///
/// Failure: returns NULL when out of memory.
char *memrt__block_memory_alloc(const memrt__block_request_t *request,
                                memrt__block_layout_t *layout);

/// Free the memory of a block. `bytes` and `align` come from its layout.
void memrt__block_memory_free(memrt_meminfo_t *mi, size_t bytes, size_t align);

/// Part of the next two functions under a tool. `forbid` false: permit the accesses.
MEMRT__COLD void memrt__block_memory_mark_header(const memrt_meminfo_t *mi, bool forbid);

/// Under MEMRT_TOOLS, have AddressSanitizer report accesses just before the data of a block: to the
/// last 8 bytes of the header, which compiled code does not read. No effect for memory that does
/// not come from malloc.
static inline void memrt__block_memory_forbid_header(const memrt_meminfo_t *mi)
{
    if (MEMRT__UNLIKELY(memrt__options.tools)) {
        memrt__block_memory_mark_header(mi, true);
    }
}

/// End the effect of memrt__block_memory_forbid_header(), before the block moves.
static inline void memrt__block_memory_permit_header(const memrt_meminfo_t *mi)
{
    if (MEMRT__UNLIKELY(memrt__options.tools)) {
        memrt__block_memory_mark_header(mi, false);
    }
}

/// Grow or shrink a block with reserved addresses, at its address. False: no room, or the system
/// refused; nothing changed.
bool memrt__block_memory_resize_reserved(memrt_meminfo_t *mi, const memrt__block_layout_t *old,
                                         const memrt__block_layout_t *layout);

/// Return the bytes to which a block of the layout grows without further memory.
size_t memrt__block_memory_usable(const memrt_meminfo_t *mi, const memrt__block_layout_t *layout);

/// Return the bytes of all blocks that no allocator of a policy allocated, but blocks between guard
/// pages only of policies that allocate from the heap.
size_t memrt__block_memory_external(void);

#endif
