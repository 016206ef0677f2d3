#ifndef MEMRT_ALLOCATOR_H
#define MEMRT_ALLOCATOR_H

/// Allocators, to build policies from.

#include <stddef.h>
#include <stdint.h>

#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MEMRT_ALLOCATOR_VERSION 1u

/// Memory that an allocator holds at this moment, in bytes.
typedef struct memrt_allocator_usage {
    size_t cached; ///< bytes kept for reuse, not in use
} memrt_allocator_usage_t;

/// Table of a source of memory, or of a wrapper over another allocator (the upstream).
///
/// The context is the first argument. Every call passes the alignment, and `free` passes the size.
/// `size` is at least 1, and `align` is a power of two from 1 to MEMRT_ALIGN_MAX. `free` and
/// `realloc` receive exactly the alignment of the allocation, and its size or, after a resize, the
/// new size.
///
/// To write an allocator, set `struct_size` and `version`. A function may be NULL if its comment
/// states the meaning of NULL.
/// Ownership: memrt copies the struct; `ctx` must live until `destroy`.
/// Threads:   any thread, without a GIL, several threads at the same time.
typedef struct memrt_allocator {
    size_t struct_size; ///< sizeof(memrt_allocator_t) of the code that filled in the struct
    uint32_t version;   ///< MEMRT_ALLOCATOR_VERSION
    uint32_t reserved;  ///< 0
    const char *name;   ///< static text, for reports
    void *ctx;          ///< first argument of every function

    /// Allocate a block, contents undefined. NULL: out of memory, the only reason for NULL.
    void *(*alloc)(void *ctx, size_t size, size_t align);
    /// Allocate a block of zero bytes. NULL function: memrt calls `alloc` and clears the block.
    void *(*alloc_zeroed)(void *ctx, size_t size, size_t align);
    /// Resize a block, keep its alignment and min(old, new) bytes of contents; the block may move.
    /// NULL: out of memory, and the old block is unchanged. NULL function: memrt allocates, copies
    /// and frees.
    void *(*realloc)(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align);
    /// Free a block; `ptr` is never NULL.
    void (*free)(void *ctx, void *ptr, size_t size, size_t align);
    /// Give cached memory back to the upstream or the system; return the number of bytes. NULL
    /// function: no cache exists.
    size_t (*release_unused)(void *ctx);
    /// Fill in the usage at this moment. NULL function: nothing is cached.
    void (*usage)(void *ctx, memrt_allocator_usage_t *out);
    /// Destroy the allocator. No block of the allocator is live, and no call is in progress. NULL
    /// function: nothing to destroy.
    void (*destroy)(void *ctx);
    /// Grow a block at its address from `old_size` to the larger `new_size`. Returns 1, or 0 with
    /// nothing changed. NULL function: no block grows in place.
    int (*try_expand)(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align);
    /// Return the largest size to which a block of `size` bytes grows without further memory. NULL
    /// function: `size`.
    size_t (*usable_size)(void *ctx, const void *ptr, size_t size, size_t align);
    /// Return the largest size with the memory of a request for `size` bytes, at least `size`. NULL
    /// function: `size`.
    size_t (*good_size)(void *ctx, size_t size, size_t align);
} memrt_allocator_t;

/// Bytes with which checking mode and guards fill memory. The bytes are recognizable in a value
/// that was read, and in a debugger. Reports point out an address that consists of these bytes.
#define MEMRT_POISON_FRESH 0xCD   ///< new block that was not written yet
#define MEMRT_POISON_FREED 0xDD   ///< block that was freed
#define MEMRT_POISON_REDZONE 0xFD ///< redzone before the start and past the end of a block

/// Return the default allocator; static.
///
/// Small blocks come from thread caches by size class, large blocks from the large-object
/// cache. If MEMRT_CACHE is off, small blocks come from the C library and large blocks are
/// mapped. If MEMRT_TOOLS is on, all blocks come from the C library.
typedef const memrt_allocator_t *(*memrt_allocator_default_fn)(void);

/// Return the allocator over the C library's malloc; static.
typedef const memrt_allocator_t *(*memrt_allocator_system_fn)(void);

/// Return the allocator that maps whole pages from the operating system; static. Pages are
/// zeroed lazily, and large blocks use huge pages.
typedef const memrt_allocator_t *(*memrt_allocator_mapped_fn)(void);

/// Create a wrapper that puts a redzone around each block and aborts with a message on misuse.
///
/// free and realloc detect a write past either end, a second free, and a size or alignment that
/// differs from the block's. The wrapper keeps the blocks that were freed last for a while, and
/// aborts when a kept block was written to.
/// Ownership: `upstream` is copied, and the wrapper's `destroy` destroys the upstream as well.
///            Hand `*out` to policy_new, or call its `destroy`.
/// Failure:   MEMRT_EINVAL for a bad allocator table; MEMRT_ENOMEM.
typedef memrt_status_t (*memrt_allocator_guard_fn)(const memrt_allocator_t *upstream,
                                                   memrt_allocator_t *out);

#ifdef __cplusplus
}
#endif

#endif
