#ifndef MEMRT_RESIZABLE_H
#define MEMRT_RESIZABLE_H

/// Resizable MemInfos, whose data may move: read the data pointer again after each call.
///
/// Threads: only one thread at a time may resize a MemInfo. The caller must inform all other
///          holders of references.

#include <stddef.h>

#include <memrt/meminfo/create.h>
#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Create a resizable MemInfo with `size` bytes of data, count 1. `options->dtor` receives the
/// data that is current at the end.
/// Failure: MEMRT_EINVAL as meminfo_new, and for `external` and `align_offset`; MEMRT_ENOMEM.
typedef memrt_status_t (*memrt_resizable_new_fn)(size_t size, const memrt_new_options_t *options,
                                                 memrt_meminfo_t **out);

/// Create a resizable MemInfo as resizable_new, whose data never moves: `reserve` bytes of
/// addresses are reserved for the data. Only the data itself takes memory and counts as live. The
/// bytes of the data are zero, also those of a growth into new pages.
///
/// resizable_try_expand and resizable_realloc then grow the data up to `reserve`, and beyond fail.
/// The memory comes from the system. The allocator of the policy is not called; the policy's limits
/// apply.
/// Failure: MEMRT_EINVAL as resizable_new, and for a `reserve` of 0 or below `size`; MEMRT_ENOMEM,
///          also where the system limits the addresses of the process (RLIMIT_AS).
typedef memrt_status_t (*memrt_resizable_new_reserved_fn)(size_t size, size_t reserve,
                                                          const memrt_new_options_t *options,
                                                          memrt_meminfo_t **out);

/// Shrink the data of a MemInfo from resizable_new_reserved to `size` bytes, and return whole pages
/// to the system. A size that is not smaller changes nothing.
/// Failure: MEMRT_EBUSY: other references to `mi` or to its data block exist; MEMRT_ENOTSUP: the
///          data has no reserve. Nothing changed.
typedef memrt_status_t (*memrt_resizable_try_shrink_fn)(memrt_meminfo_t *mi, size_t size);

/// Give `mi` a fresh data block of `size` bytes and return the new block.
/// Ownership: the caller owns the previous data block, and frees the block with resizable_free.
/// Failure:   NULL: out of memory, nothing changed.
typedef void *(*memrt_resizable_alloc_fn)(memrt_meminfo_t *mi, size_t size);

/// Resize the data and return the data pointer, which may have moved. NULL: out of memory,
/// nothing changed.
typedef void *(*memrt_resizable_realloc_fn)(memrt_meminfo_t *mi, size_t size);

/// Grow the data at its address, as block_try_expand grows a block. Holders of other references to
/// `mi` keep a valid data pointer, unlike after resizable_realloc, and may read the pointer and the
/// size during the call.
/// Failure: MEMRT_EBUSY: another holder has the data block; MEMRT_ENOMEM: no data, no room after
///          the data, or a limit is reached. Nothing changed.
typedef memrt_status_t (*memrt_resizable_try_expand_fn)(memrt_meminfo_t *mi, size_t size);

/// Free a data block of `mi`. After the current data block is freed, `mi` has no data. NULL:
/// nothing happens.
typedef void (*memrt_resizable_free_fn)(memrt_meminfo_t *mi, void *data);

#ifdef __cplusplus
}
#endif

#endif
