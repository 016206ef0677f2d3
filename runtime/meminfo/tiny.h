#ifndef MEMRT_MEMINFO_TINY_H
#define MEMRT_MEMINFO_TINY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/meminfo.h>

#include "runtime/alloc/heap/thread_cache.h"
#include "runtime/base/usdt.h"
#include "runtime/policy/scope.h"

/// Tiny blocks: 1 to MEMRT_TINY_MAX bytes with a header of 16 bytes, because a header of 64 bytes
/// would take most of the memory.
///
///     | memrt__tiny_t, 16 | data |
///     ^ at a multiple of 32
///
/// Tiny data is never at a multiple of 64; the data of all other blocks always is. The address
/// alone therefore identifies a tiny block. A tiny block has one holder, which has the data
/// pointer. The MemInfo of a tiny block is a separate header, allocated on the first request for
/// the MemInfo. From then on, the count in the MemInfo keeps the block alive.
///
/// Policies with an explicit alignment have no tiny blocks. Tiny blocks are also off while tracking
/// or checking is on.
///
/// This header has the memory of tiny blocks. The block_* slots for tiny blocks, and their
/// MemInfos, are in tiny_api.h.

/// Header of a tiny block. The link of a free list overlays the second word of a free block. Blocks
/// are at multiples of 32 in the lower half of the address space, so neither half of a link equals
/// `mark`. `mark` therefore distinguishes a live block from a freed block, from fresh memory (which
/// is zero), and from almost all addresses that memrt did not return.
typedef struct memrt__tiny {
    size_t meminfo;  ///< address of the MemInfo, or 0; published by release, read by acquire
    uint16_t policy; ///< account index; fixed
    uint16_t size;   ///< requested bytes
    uint32_t mark;   ///< MEMRT__TINY_LIVE in a live block
} memrt__tiny_t;

_Static_assert(sizeof(memrt__tiny_t) == MEMRT__TINY_HEADER, "data is at 16 modulo 32");

#define MEMRT__TINY_LIVE 0xA5A5A501u

static inline bool memrt__is_tiny(const void *data)
{
    return ((uintptr_t)data & (MEMRT_ALIGN_MIN - 1)) != 0;
}

static inline memrt__tiny_t *memrt__tiny_of(const void *data)
{
    MEMRT__ASSERT(memrt__is_tiny(data));
    return (memrt__tiny_t *)((uintptr_t)data - sizeof(memrt__tiny_t));
}

static inline void *memrt__tiny_data(memrt__tiny_t *tiny)
{
    return tiny + 1;
}

static inline memrt_policy_t *memrt__tiny_policy(const memrt__tiny_t *tiny)
{
    return memrt__policies[tiny->policy];
}

static inline bool memrt__tiny_is_live(const memrt__tiny_t *tiny)
{
    return tiny->mark == MEMRT__TINY_LIVE;
}

static inline void memrt__tiny_write(memrt__tiny_t *tiny, uint32_t policy, size_t size)
{
    MEMRT__ASSERT(policy < MEMRT__ACCOUNTS && size - 1 < MEMRT_TINY_MAX);
    MEMRT__ASSERT((size_t)tiny % 32 == 0); /* so that data is never at a multiple of 64 */
    *tiny = (memrt__tiny_t){
        .policy = (uint16_t)policy, .size = (uint16_t)size, .mark = MEMRT__TINY_LIVE};
}

/// Return whether a tiny block may serve the request. The caller must have checked that no observer
/// of MEMRT__SLOW_ALWAYS is on.
static inline bool memrt__tiny_fits(const memrt_policy_t *policy, size_t size)
{
    return size - 1 < MEMRT_TINY_MAX && policy->tiny;
}

/// Allocate a tiny block and return its data. NULL: no tiny block is available; nothing is counted.
MEMRT__COLD void *memrt__tiny_alloc(memrt_policy_t *policy, size_t size);

/// Fast path of memrt__tiny_alloc(): take a block from the thread cache, if the counters need no
/// update of the aggregates. NULL: the fast path does not apply.
static inline void *memrt__tiny_alloc_fast(memrt__thread_t *self, memrt__home_t home, size_t size)
{
    memrt__tiny_t *tiny = memrt__thread_cache_take_counted(self, home, memrt__class_of_tiny(size),
                                                           MEMRT__KIND_TINY, size);
    if (MEMRT__UNLIKELY(tiny == NULL)) {
        return NULL;
    }
    memrt__tiny_write(tiny, home.account, size);
    memrt__probe_alloc(tiny + 1, size, home.account, MEMRT_KIND_BLOCK);
    return tiny + 1;
}

/// Return a freed tiny block to the thread cache. The counters of the account stay.
static inline void memrt__tiny_cache(memrt__tiny_t *tiny)
{
    uint32_t account = tiny->policy;
    size_t size = tiny->size;
    MEMRT__ASSERT(memrt__tiny_is_live(tiny));
    memrt__thread_cache_return(memrt__class_of_tiny(size), tiny);
    memrt__probe_free(tiny + 1, size, account, MEMRT_KIND_BLOCK);
}

/// Free a tiny block without a MemInfo, or after the MemInfo was freed. The counter `freed` is the
/// last access to the policy, which may be destroyed right after.
void memrt__tiny_end(memrt__tiny_t *tiny);

#endif
