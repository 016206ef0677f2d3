#ifndef MEMRT_MEMINFO_TINY_H
#define MEMRT_MEMINFO_TINY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <memrt/meminfo.h>

#include "runtime/alloc/heap/thread_cache.h"
#include "runtime/base/usdt.h"
#include "runtime/meminfo/block_layout.h"
#include "runtime/policy/home.h"
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

/// Header of a tiny block. The mark in `word` distinguishes a live block from a freed block and
/// from memory that was never handed out, whose headers are 0, and from almost all addresses that
/// memrt did not return. The link of a free list overlays the data.
typedef struct memrt__tiny {
    size_t meminfo; ///< address of the MemInfo, or 0; published by release, read by acquire
    size_t word;    ///< relaxed; size, account and mark, see fast_header.h; 0: not live
} memrt__tiny_t;

_Static_assert(sizeof(memrt__tiny_t) == MEMRT__TINY_HEADER, "data is at 16 modulo 32");

/// Return whether data at an address may be of a tiny block. Blocks with MEMRT__ALIGN_OFFSET are
/// the only others for which the result is true.
static inline bool memrt__may_be_tiny(const void *data)
{
    return ((uintptr_t)data & (MEMRT_ALIGN_MIN - 1)) != 0;
}

/// Return whether data that is at no multiple of 64 is of a block with MEMRT__ALIGN_OFFSET. Where
/// the header of a tiny block has its size, the header of such a block has `lead`, which is larger.
static inline bool memrt__is_offset_data(const void *data)
{
    const memrt__tiny_t *tiny = (const memrt__tiny_t *)data - 1;
    return (uint16_t)memrt__load_relaxed(&tiny->word) > MEMRT_TINY_MAX &&
           memrt__block_of(data)->data == data;
}

static inline bool memrt__is_tiny(const void *data)
{
    return memrt__may_be_tiny(data) && !memrt__is_offset_data(data);
}

_Static_assert(offsetof(memrt_meminfo_t, lead) ==
                   MEMRT_HEADER_SIZE - sizeof(memrt__tiny_t) + offsetof(memrt__tiny_t, word),
               "a size and a lead have the same place before the data");
_Static_assert((uint16_t)(MEMRT__OFFSET_LEAD + MEMRT__ALIGN_OFFSET) > MEMRT_TINY_MAX,
               "a lead is no size of a tiny block");

static inline memrt__tiny_t *memrt__tiny_of(const void *data)
{
    MEMRT__ASSERT(memrt__may_be_tiny(data));
    return (memrt__tiny_t *)((uintptr_t)data - sizeof(memrt__tiny_t));
}

static inline void *memrt__tiny_data(memrt__tiny_t *tiny)
{
    return tiny + 1;
}

static inline size_t memrt__tiny_size(const memrt__tiny_t *tiny)
{
    return (uint16_t)memrt__load_relaxed(&tiny->word);
}

/// Return the index of the account, which is fixed.
static inline uint32_t memrt__tiny_account(const memrt__tiny_t *tiny)
{
    return (uint16_t)(memrt__load_relaxed(&tiny->word) >> MEMRT__TINY_ACCOUNT_AT);
}

static inline memrt_policy_t *memrt__tiny_policy(const memrt__tiny_t *tiny)
{
    return memrt__policies[memrt__tiny_account(tiny)];
}

static inline bool memrt__tiny_is_live(const memrt__tiny_t *tiny)
{
    size_t mark = memrt__load_relaxed(&tiny->word) >> MEMRT__TINY_MARK_AT;
    return mark == MEMRT__TINY_LIVE || mark == MEMRT__TINY_SHARED;
}

/// Write the header of a new block. `word` is the word of its account, less the size.
static MEMRT__INLINE void memrt__tiny_write(memrt__tiny_t *tiny, size_t word, size_t size)
{
    MEMRT__ASSERT(size - 1 < MEMRT_TINY_MAX && word >> MEMRT__TINY_MARK_AT == MEMRT__TINY_LIVE);
    MEMRT__ASSERT((size_t)tiny % 32 == 0); /* so that data is never at a multiple of 64 */
    MEMRT__ASSERT(tiny->meminfo == 0 && !memrt__tiny_is_live(tiny));
    memrt__store_relaxed(&tiny->word, word + size);
}

/// Return whether a tiny block may serve the request. The caller must have checked that no observer
/// of MEMRT__SLOW_ALWAYS is on.
static inline bool memrt__tiny_fits(const memrt_policy_t *policy, size_t size)
{
    return size - 1 < MEMRT_TINY_MAX && policy->tiny;
}

/// Return the largest size with the memory of a tiny block of `size` bytes.
static inline size_t memrt__tiny_good_size(size_t size)
{
    size_t room = memrt__class_bytes((unsigned)memrt__class_of_tiny(size)) - MEMRT__TINY_HEADER;
    return memrt__size_min(room, MEMRT_TINY_MAX);
}

/// Allocate a tiny block and return its data. NULL: no tiny block is available; nothing is counted.
MEMRT__COLD void *memrt__tiny_alloc(memrt_policy_t *policy, size_t size);

/// Fast path of memrt__tiny_alloc(): take a block from the thread cache, if the counters need no
/// update of the aggregates. NULL: the fast path does not apply.
static MEMRT__INLINE void *memrt__tiny_alloc_fast(memrt__thread_t *self, const memrt__home_t *home,
                                                  size_t size)
{
    memrt__tiny_t *tiny = memrt__bin_take_counted(self, memrt__class_of_tiny(size), home->shard,
                                                  MEMRT__KIND_TINY, size);
    if (MEMRT__UNLIKELY(tiny == NULL)) {
        return NULL;
    }
    memrt__tiny_write(tiny, home->tiny, size);
    memrt__probe_alloc(tiny + 1, size, home->account, MEMRT_KIND_BLOCK);
    return tiny + 1;
}

/// Zero the data of a tiny block of `size` bytes, and the rest of its room up to 16, 48 or 80
/// bytes. Fixed sizes need no loop.
static MEMRT__INLINE void *memrt__tiny_zero(void *data, size_t size)
{
    char *bytes = data;
    MEMRT__ASSERT(size - 1 < MEMRT_TINY_MAX);
    if (size > 48) {
        memset(bytes, 0, 80);
    } else if (size > 16) {
        memset(bytes, 0, 48);
    } else {
        memset(bytes, 0, 16);
    }
    return data;
}

/// Return a freed tiny block to the thread cache. The counters of the account stay.
static inline void memrt__tiny_cache(memrt__tiny_t *tiny)
{
    uint32_t account = memrt__tiny_account(tiny);
    size_t size = memrt__tiny_size(tiny);
    MEMRT__ASSERT(memrt__tiny_is_live(tiny));
    tiny->meminfo = 0;
    memrt__store_relaxed(&tiny->word, 0);
    memrt__thread_cache_return((unsigned)memrt__class_of_tiny(size), tiny);
    memrt__probe_free(tiny + 1, size, account, MEMRT_KIND_BLOCK);
}

/// Free a tiny block without a MemInfo, or after the MemInfo was freed. The counter `freed` is the
/// last access to the policy, which may be destroyed right after.
void memrt__tiny_end(memrt__tiny_t *tiny);

#endif
