#ifndef MEMRT_WEAK_H
#define MEMRT_WEAK_H

/// Weak handles: values that refer to a buffer without keeping the buffer alive.

#include <stdint.h>

#include <memrt/meminfo.h>
#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Weak handle to a MemInfo: a plain value, which may be copied and outlives the buffer. No call
/// frees a handle. A handle of zeros refers to no buffer.
typedef struct memrt_weak {
    uintptr_t meminfo; ///< address of the MemInfo; must not be used as a pointer
    uint64_t id;       ///< number of the allocation, which no other buffer gets
} memrt_weak_t;

/// Write a weak handle to `mi`. The caller holds a reference during the call.
///
/// The live list has the buffer from then on, as a named buffer, and its free takes the slow path.
/// Failure: MEMRT_ENOMEM, and `*out` is unchanged.
typedef memrt_status_t (*memrt_weak_new_fn)(memrt_meminfo_t *mi, memrt_weak_t *out);

/// Return a new reference to the MemInfo of a handle, or NULL after the last release.
///
/// A buffer whose memory was reused has another number, so that the handle never refers to a later
/// buffer. NULL also while a thread resizes the buffer, and after block_realloc moved a block.
/// Threads: any thread, at the same time as the last release: either the call gets a reference, or
///          the release destroys the buffer.
typedef memrt_meminfo_t *(*memrt_weak_acquire_fn)(const memrt_weak_t *weak);

#ifdef __cplusplus
}
#endif

#endif
