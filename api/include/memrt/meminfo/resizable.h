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
/// Failure: MEMRT_EINVAL as meminfo_new, and for `external`; MEMRT_ENOMEM.
typedef memrt_status_t (*memrt_resizable_new_fn)(size_t size, const memrt_new_options_t *options,
                                                 memrt_meminfo_t **out);

/// Give `mi` a fresh data block of `size` bytes and return the new block.
/// Ownership: the caller owns the previous data block, and frees the block with resizable_free.
/// Failure:   NULL: out of memory, nothing changed.
typedef void *(*memrt_resizable_alloc_fn)(memrt_meminfo_t *mi, size_t size);

/// Resize the data and return the data pointer, which may have moved. NULL: out of memory,
/// nothing changed.
typedef void *(*memrt_resizable_realloc_fn)(memrt_meminfo_t *mi, size_t size);

/// Grow the data at its address, as block_try_expand grows a block. Holders of other references to
/// `mi` keep a valid data pointer, unlike after resizable_realloc.
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
