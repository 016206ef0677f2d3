#ifndef MEMRT_ALLOCATOR_H
#define MEMRT_ALLOCATOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MEMRT_ALLOCATOR_VERSION 1u

/// What an allocator holds at this moment, in bytes.
typedef struct memrt_allocator_usage {
    size_t cached; ///< kept for reuse, in use by nobody
} memrt_allocator_usage_t;

/// A source of memory, or a wrapper over another one (its upstream).
///
/// Context first, alignment on every call, size on free. `size` is at least 1, `align` is a power
/// of two from 1 to MEMRT_ALIGN_MAX; `free` and `realloc` get exactly the size and alignment of the
/// allocation. Functions are called from any thread, without a GIL, at the same time.
///
/// To offer your own, fill `struct_size` and `version` and leave what you do not have NULL where
/// the line says so. memrt copies the struct; `ctx` must live until `destroy`.
typedef struct memrt_allocator {
    size_t struct_size; ///< sizeof(memrt_allocator_t) of whoever filled it
    uint32_t version;   ///< MEMRT_ALLOCATOR_VERSION
    uint32_t reserved;  ///< 0
    const char *name;   ///< static text, for reports
    void *ctx;          ///< first argument of every function

    /// New block, contents undefined. NULL means out of memory and nothing else.
    void *(*alloc)(void *ctx, size_t size, size_t align);
    /// New block, all zero. NULL function: alloc and clear.
    void *(*alloc_zeroed)(void *ctx, size_t size, size_t align);
    /// Resized block with the same alignment and min(old, new) bytes of contents; may move. On NULL
    /// the old block is as it was. NULL function: alloc, copy, free.
    void *(*realloc)(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align);
    /// Give a block back; `ptr` is never NULL.
    void (*free)(void *ctx, void *ptr, size_t size, size_t align);
    /// Give cached memory back to the upstream or system; returns bytes. NULL function: no cache.
    size_t (*release_unused)(void *ctx);
    /// Fill in what is held now. NULL function: nothing is cached.
    void (*usage)(void *ctx, memrt_allocator_usage_t *out);
    /// The allocator is no longer used: no block of it is live, no call under way. May be NULL.
    void (*destroy)(void *ctx);
} memrt_allocator_t;

/// What checking mode and guards fill memory with, so that it is known when it is met: as a value
/// that was read, or under a debugger. A report says so of an address that is made of such bytes.
#define MEMRT_POISON_FRESH 0xCD ///< a new block that was not written yet
#define MEMRT_POISON_FREED 0xDD ///< a block that was freed
#define MEMRT_POISON_FENCE 0xFD ///< before the start and past the end of a block

#ifdef __cplusplus
}
#endif

#endif
