#ifndef MEMRT_MEMINFO_H
#define MEMRT_MEMINFO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Runs once, when the count of a MemInfo reaches zero, before its memory is freed.
///
/// data, size, dtor_info: the words of the MemInfo. May allocate, may release other MemInfos; when
/// that takes the count of one to zero whose destructor would be the 33rd to run inside another, it
/// runs after these have returned. Must return.
/// Threads: on whichever thread gave up the last reference; it must not assume a GIL.
typedef void (*memrt_dtor_fn)(void *data, size_t size, void *dtor_info);

/// Destructor of the NRT slot `manage_memory`: sees the data pointer only.
typedef void (*memrt_managed_dtor_fn)(void *data);

/// Allocator of the NRT slot `allocate_external`; same layout as Numba's NRT_ExternalAllocator.
/// The struct must outlive every MemInfo made with it.
typedef struct memrt_external_allocator {
    void *(*malloc)(size_t size, void *opaque_data);
    void *(*realloc)(void *ptr, size_t new_size, void *opaque_data);
    void (*free)(void *ptr, void *opaque_data);
    void *opaque_data;
} memrt_external_allocator_t;

/// What stands behind a MemInfo's data.
typedef enum memrt_kind {
    MEMRT_KIND_INLINE = 1,    ///< data follows the header in one block
    MEMRT_KIND_ADOPTED = 2,   ///< data belongs to the caller's world, the dtor gives it back
    MEMRT_KIND_RESIZABLE = 3, ///< data is a block of its own that may move
    MEMRT_KIND_BLOCK = 4,     ///< block handed out by its data pointer, no MemInfo asked for yet
} memrt_kind_t;

/// One reference-counted buffer: the header, 64 bytes.
///
/// The first six words are Numba's and stay at their offsets: compiled code increments and
/// decrements `refct` and reads `data` directly. Everything may be read while a reference is
/// held; only memrt writes, except for `refct` under the rule that whoever takes it to zero
/// calls `call_dtor`.
typedef struct memrt_meminfo {
    size_t refct;       ///< number of references; a plain word, atomic by access
    memrt_dtor_fn dtor; ///< NULL: nothing to run
    void *dtor_info;    ///< third argument of dtor
    void *data;         ///< first byte; NULL only for a resizable one without data
    size_t size;        ///< bytes, as asked for
    memrt_external_allocator_t *external_allocator; ///< NULL: made by the policy's allocator
    uint16_t policy;    ///< memrt's: index of the account that holds the block
    uint8_t kind;       ///< a memrt_kind_t; fixed
    uint8_t align_log2; ///< memrt's: log2 of the alignment asked of the allocator; fixed
    uint32_t trace;     ///< memrt's: number of its birth in a trace; 0: it was in none
    uint32_t lead;      ///< memrt's: bytes from the start of the block to its data; fixed
    uint32_t flags;     ///< memrt's: atomic by access
} memrt_meminfo_t;

/// In `flags`: memrt_api_t.watch was called for it.
#define MEMRT_FLAG_WATCHED 4u

/// A MemInfo with its data inline has its header this many bytes before the data.
#define MEMRT_HEADER_SIZE 64u

/// Blocks (block_alloc) of 1 to this many bytes from a policy that names no alignment are aligned
/// to 16 and have a header of 16. Their MemInfo, once somebody asks for it, is elsewhere.
#define MEMRT_TINY_MAX 64u

/// Smallest and largest alignment in bytes; all other data is aligned to the smallest at least.
#define MEMRT_ALIGN_MIN 64u
#define MEMRT_ALIGN_MAX ((size_t)1 << 30)

/// Longest name of a MemInfo or policy in bytes, without the closing zero.
#define MEMRT_NAME_MAX 63u

#ifdef __cplusplus
}
#endif

#endif
