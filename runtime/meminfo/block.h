#ifndef MEMRT_MEMINFO_BLOCK_H
#define MEMRT_MEMINFO_BLOCK_H

#include <stdbool.h>
#include <stddef.h>

#include <memrt/meminfo.h>

#include "runtime/alloc/policy.h"
#include "runtime/base/atomics.h"

/// A block: one piece of memory from an allocator, with a MemInfo header right before its data.
///
///     | padding, lead - 64 | header, 64 | data, size bytes |
///     ^ aligned                         ^ aligned
///
/// Blocks of MEMRT__LARGE bytes and more have their data on a page of its own. What stands here
/// makes and unmakes blocks and keeps their account; references and destructors are meminfo.h's
/// matter.

/// memrt_meminfo_t.flags.
#define MEMRT__FLAG_MEMINFO 1u  ///< counted as a MemInfo
#define MEMRT__FLAG_LISTED 2u   ///< in the live set
#define MEMRT__FLAG_WATCHED 4u  ///< its resizes and death go to the watcher
#define MEMRT__FLAG_READONLY 8u ///< what `readonly` says
#define MEMRT__FLAG_PART 16u    ///< data of a resizable MemInfo, which is who to speak of

/// What a new block is to be.
typedef struct memrt__block_request {
    memrt_policy_t *policy; ///< held by the caller
    size_t size;            ///< bytes of data in the block
    size_t alignment;       ///< power of two; 0: the policy's
    memrt_kind_t kind;      ///< adopted and resizable blocks are a header without data
    bool zeroed;            ///< data all zero
    memrt_external_allocator_t *external; ///< NULL: the policy's allocator
} memrt__block_request_t;

/// New block, when tracking is on listed. It is unborn: its count is 0, so that nobody who comes
/// upon it in the live set can hold it, and it is on no account, so that giving it up leaves no
/// trace. NULL: out of memory, counted as failed.
memrt_meminfo_t *memrt__block_new(const memrt__block_request_t *request);

/// The block is complete: it goes on the account and its count becomes 1.
memrt_meminfo_t *memrt__block_born(memrt_meminfo_t *mi);

/// Give an unborn block up.
void memrt__block_discard(memrt_meminfo_t *mi);

/// Let a block say where its data is. Relaxed, because who walks the live set may read it
/// meanwhile.
static inline void memrt__block_set_data(memrt_meminfo_t *mi, void *data, size_t size)
{
    memrt__store_relaxed((size_t *)&mi->data, (size_t)data);
    memrt__store_relaxed(&mi->size, size);
}

/// Take a block whose count is zero off the books and give its memory back.
void memrt__block_delete(memrt_meminfo_t *mi);

/// Make sure that nobody else holds the block nor can come to hold it. False: somebody does.
bool memrt__block_claim(memrt_meminfo_t *mi);

/// Resize a claimed block and give the claim up. NULL: out of memory, counted as failed, nothing
/// changed.
memrt_meminfo_t *memrt__block_resize(memrt_meminfo_t *mi, size_t size);

/// Whether the header of a listed block says what a header can say. A write before the start of the
/// data reaches its last words first.
bool memrt__block_is_sound(const memrt_meminfo_t *mi);

/// By how many bytes the data of a block was overrun: below zero before the block's start, above
/// zero past its end, 0 for not at all or when no guard fenced it.
ptrdiff_t memrt__block_overrun(const memrt_meminfo_t *mi);

/// Whether a block is nothing by itself: the data of a resizable MemInfo, and nobody asked for
/// more.
static inline bool memrt__block_is_part(const memrt_meminfo_t *mi)
{
    unsigned both = MEMRT__FLAG_PART | MEMRT__FLAG_MEMINFO;
    return (memrt__flags_load_relaxed(&mi->flags) & both) == MEMRT__FLAG_PART;
}

/// Count a block as a MemInfo from now on, once.
void memrt__block_promote(memrt_meminfo_t *mi);

/// Count a request that could not be met.
void memrt__block_refused(memrt_policy_t *policy);

/// The one way from a data pointer that memrt gave out to its header.
static inline memrt_meminfo_t *memrt__block_of(const void *data)
{
    return (memrt_meminfo_t *)((uintptr_t)data - MEMRT_HEADER_SIZE);
}

/// Name the block, which puts it in the live set if it is not there; NULL takes the name away.
/// False: no memory, nothing changed.
bool memrt__block_set_name(memrt_meminfo_t *mi, const char *name);

/// Tracking: whether new blocks are listed. Relaxed; publishes nothing.
extern size_t memrt__tracking;

/// Who is told of watched blocks. Release by memrt__watcher_set, partner: acquire where it is
/// called.
void memrt__watcher_set(const memrt_watcher_t *watcher);

#endif
