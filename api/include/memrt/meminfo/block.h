#ifndef MEMRT_BLOCK_H
#define MEMRT_BLOCK_H

/// Blocks that are identified by their data pointer: raw memory with the signatures of NEP 49.
///
/// The slots block_alloc, block_calloc, block_realloc and block_free form a NumPy handler with a
/// memrt_policy_t as context (NULL: the default policy).

#include <stddef.h>

#include <memrt/meminfo.h>
#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Allocate a block of `size` bytes. A size of 0 still yields an address. NULL: out of memory.
///
/// The data has the alignment of the policy. If the policy names no alignment, blocks of 1 to
/// MEMRT_TINY_MAX bytes are aligned to 16, because their header is smaller.
typedef void *(*memrt_block_alloc_fn)(void *policy, size_t size);

/// Allocate a zeroed block of `count * size` bytes. NULL: out of memory, or the product
/// overflows.
typedef void *(*memrt_block_calloc_fn)(void *policy, size_t count, size_t size);

/// Resize a block, which stays with the policy that made the block. `data` NULL: block_alloc.
///
/// While other holders have the block through a MemInfo, the old block stays unchanged for the
/// other holders, and the caller gets a copy.
/// Failure: NULL: out of memory, and `data` is unchanged.
typedef void *(*memrt_block_realloc_fn)(void *policy, void *data, size_t size);

/// Release the caller's reference to a block; the last release frees the block. `size` is
/// ignored, because the header stores the size. `data` NULL: nothing happens.
/// Failure: aborts with a message if the block was freed before and its memory is not in use
///          again. Checking mode detects more double frees, because freed memory is not reused
///          at once.
typedef void (*memrt_block_free_fn)(void *policy, void *data, size_t size);

/// Return a new reference to the MemInfo of a live block. `data` may also be the first byte of
/// any MemInfo with inline data. The caller guarantees that `data` is valid; checking mode
/// verifies `data`.
/// Failure: MEMRT_ENOMEM.
typedef memrt_status_t (*memrt_block_meminfo_fn)(void *data, memrt_meminfo_t **out);

/// Return a new reference to the live MemInfo whose data starts at `data`, which may be any
/// address at all.
///
/// The search covers buffers that were allocated while tracking was on, and named buffers. The
/// data of a resizable MemInfo leads to that MemInfo.
/// Failure: MEMRT_ENOENT: no such MemInfo is known.
typedef memrt_status_t (*memrt_find_fn)(const void *data, memrt_meminfo_t **out);

/// Grow a block at its address: no byte moves, and `data` stays valid. `data` may also be the first
/// byte of a MemInfo with inline data. A size that is not larger changes nothing.
///
/// The new bytes are undefined. Statistics and limits count the growth as that of a resize, and a
/// refused growth as nothing. For the data of a resizable MemInfo, call resizable_try_expand.
/// Failure: MEMRT_EBUSY: other references exist; MEMRT_ENOMEM: no room after the block, a limit is
///          reached, or the block was frozen; MEMRT_ENOTSUP: the block is from an external
///          allocator. Nothing changed.
typedef memrt_status_t (*memrt_block_try_expand_fn)(void *data, size_t size);

/// Return the bytes to which block_try_expand grows a block without further memory, at least its
/// size. A program must not write to the bytes before the growth.
typedef size_t (*memrt_block_usable_size_fn)(const void *data);

/// Return the largest size of a block with the memory of a request for `size` bytes, at least
/// `size`. A block of this size wastes no memory. `policy` NULL: the default policy.
typedef size_t (*memrt_block_good_size_fn)(const memrt_policy_t *policy, size_t size);

#ifdef __cplusplus
}
#endif

#endif
