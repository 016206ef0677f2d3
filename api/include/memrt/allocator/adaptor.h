#ifndef MEMRT_ADAPTOR_H
#define MEMRT_ADAPTOR_H

/// Adaptors: allocators that add a property to another allocator, the upstream.

#include <stddef.h>
#include <stdint.h>

#include <memrt/allocator.h>
#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum memrt_adaptor_kind {
    MEMRT_ADAPTOR_COUNTING = 1, ///< count calls and bytes in `counts`
    MEMRT_ADAPTOR_LIMITING = 2, ///< refuse requests above `amount` bytes in use
    MEMRT_ADAPTOR_ALIGNING = 3, ///< serve each alignment; request at most `amount` of the upstream
    MEMRT_ADAPTOR_RETRYING = 4, ///< call `failed` when the upstream refuses, then repeat
    MEMRT_ADAPTOR_LOGGING = 5,  ///< write a line for each call to `file`
    MEMRT_ADAPTOR_THREAD_SAFE = 6, ///< call the upstream on one thread at a time
    MEMRT_ADAPTOR_PREFETCHING = 7, ///< map pages of new blocks of at least `amount` bytes
    MEMRT_ADAPTOR_ARENA = 8        ///< place small blocks in chunks of `amount` bytes
} memrt_adaptor_kind_t;

/// Counters of a counting adaptor, in the caller's memory. Bytes are the bytes that the adaptor's
/// user requested. Other threads may change the counters during a reading.
typedef struct memrt_adaptor_counts {
    size_t allocations; ///< successful allocations
    size_t resizes;     ///< successful resizes
    size_t frees;
    size_t refusals; ///< refused allocations and resizes
    size_t in_use;   ///< bytes of live blocks
    size_t peak;     ///< maximum of `in_use`
} memrt_adaptor_counts_t;

/// Called when the upstream of a retrying adaptor refuses `size` bytes. Returns 1 to repeat the
/// request, for example after the function freed memory, and 0 to refuse the request.
///
/// Threads: the allocating thread, without a lock of memrt, with or without a GIL.
typedef int (*memrt_adaptor_failed_fn)(size_t size, size_t align, void *context);

/// Settings of an adaptor. Set `struct_size`, `kind` and the members of the kind.
typedef struct memrt_adaptor_options {
    size_t struct_size;             ///< sizeof(memrt_adaptor_options_t)
    uint32_t kind;                  ///< memrt_adaptor_kind_t
    int32_t file;                   ///< LOGGING: descriptor, open until the adaptor is destroyed
    size_t amount;                  ///< LIMITING, PREFETCHING: bytes; ALIGNING: a power of two,
                                    ///< at least 8; ARENA: a power of two from 2**16 to 2**30, or
                                    ///< 0 for 2**20
    memrt_adaptor_counts_t *counts; ///< COUNTING: zeros, valid until the adaptor is destroyed
    memrt_adaptor_failed_fn failed; ///< RETRYING
    void *context;                  ///< RETRYING: last argument of `failed`
} memrt_adaptor_options_t;

/// Create an adaptor over `upstream`.
///
/// A limit counts the sizes that the adaptor passes to the upstream. A block of an aligning adaptor
/// with an alignment above `amount` needs the alignment and 8 bytes more.
///
/// An arena places blocks one behind the other in chunks, which have the alignment `amount`. A
/// chunk is reused when the last of its blocks is freed. The newest block of a chunk returns its
/// bytes at its free, and grows in place. Blocks above an eighth of `amount`, in size or alignment,
/// come from the upstream. The arena keeps empty chunks for its next blocks, until release_unused.
///
/// A line of a log has 6 fields with commas between: "alloc", "realloc" or "free"; the system's id
/// of the thread; the address as a hexadecimal number, 0 for a refusal; size; alignment; and the
/// old address of a resize, else 0. Each line is one write(), which may fail without a report.
///
/// All thread-safe adaptors of the process share one lock, so at most one thread is in any of their
/// upstreams, except in `destroy`. A fork waits for the thread. An upstream may call the adaptor
/// again, but must not wait for another thread that uses a thread-safe adaptor, and must not wait
/// for a GIL.
///
/// A prefetching adaptor asks the system for the pages of a new block, and of the new end of a
/// block that grows (MADV_POPULATE_WRITE). Systems without the call get a write to each page. A
/// request also succeeds if the system has no memory for all pages.
///
/// Ownership: `upstream` and `options` are copied, and the adaptor's `destroy` destroys the
/// upstream
///            as well. Hand `*out` to policy_new or another adaptor, or call its `destroy`.
/// Failure:   MEMRT_EINVAL for a bad allocator table or bad settings; MEMRT_ENOMEM.
typedef memrt_status_t (*memrt_allocator_adaptor_fn)(const memrt_allocator_t *upstream,
                                                     const memrt_adaptor_options_t *options,
                                                     memrt_allocator_t *out);

#ifdef __cplusplus
}
#endif

#endif
