#ifndef MEMRT_MEMINFO_H
#define MEMRT_MEMINFO_H

/// MemInfo: header of one reference-counted buffer, and functions of MemInfos.

#include <stddef.h>
#include <stdint.h>

#include <memrt/policy.h>
#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Destructor of a MemInfo, called once when the count reaches zero, before the memory is freed.
///
/// The arguments data, size and dtor_info are the words of the MemInfo. A destructor must return. A
/// destructor may allocate, and may release other MemInfos. Nested destructors are limited to 32: a
/// destructor that would be the 33rd runs after the outer destructors have returned.
/// Threads: the thread that released the last reference. A destructor must not assume a GIL.
typedef void (*memrt_dtor_fn)(void *data, size_t size, void *dtor_info);

/// Destructor of the NRT slot `manage_memory`: receives only the data pointer.
typedef void (*memrt_managed_dtor_fn)(void *data);

/// Allocator of the NRT slot `allocate_external`; same layout as Numba's NRT_ExternalAllocator. The
/// struct must outlive every MemInfo made with it.
typedef struct memrt_external_allocator {
    void *(*malloc)(size_t size, void *opaque_data);
    void *(*realloc)(void *ptr, size_t new_size, void *opaque_data);
    void (*free)(void *ptr, void *opaque_data);
    void *opaque_data;
} memrt_external_allocator_t;

/// Origin and layout of a MemInfo's data.
typedef enum memrt_kind {
    MEMRT_KIND_INLINE = 1,    ///< data follows the header in one block
    MEMRT_KIND_ADOPTED = 2,   ///< data is foreign memory, which the destructor frees
    MEMRT_KIND_RESIZABLE = 3, ///< data is a separate block that may move
    MEMRT_KIND_BLOCK = 4,     ///< block that was handed out by its data pointer
} memrt_kind_t;

/// Header of one reference-counted buffer, 64 bytes.
///
/// The first six words are Numba's and stay at their offsets: compiled code increments and
/// decrements `refct` and reads `data` directly. All members may be read while a reference is held.
/// Only memrt writes members, except `refct`: code that decrements `refct` to zero must call
/// `call_dtor`.
typedef struct memrt_meminfo {
    size_t refct;       ///< number of references; a plain word, atomic by access
    memrt_dtor_fn dtor; ///< destructor; NULL: none
    void *dtor_info;    ///< third argument of dtor
    void *data;         ///< first byte; NULL only for a resizable MemInfo without data
    size_t size;        ///< bytes, as requested
    memrt_external_allocator_t *external_allocator; ///< NULL: made by the policy's allocator
    uint16_t policy;    ///< internal: index of the account that holds the block
    uint8_t kind;       ///< a memrt_kind_t; fixed
    uint8_t align_log2; ///< internal: log2 of the alignment requested from the allocator; fixed
    uint32_t flags;     ///< internal: atomic by access
    uint32_t lead;      ///< internal: bytes from the start of the block to its data; fixed
    uint32_t bin;       ///< internal: size class in a thread cache, or number in an event trace
} memrt_meminfo_t;

/// Bit in `flags`: memrt_api_t.observe was called for the MemInfo.
#define MEMRT_FLAG_OBSERVED 4u

/// Distance in bytes from the header of a MemInfo with inline data to the data.
#define MEMRT_HEADER_SIZE 64u

/// Largest size in bytes of a tiny block. A block (block_alloc) of 1 to MEMRT_TINY_MAX bytes, from
/// a policy that names no alignment, is aligned to 16 and has a header of 16 bytes. Its MemInfo is
/// created separately, on the first request.
#define MEMRT_TINY_MAX 64u

/// Smallest and largest alignment in bytes. All data is aligned to at least MEMRT_ALIGN_MIN, except
/// tiny blocks and blocks of a policy with an alignment of 16.
#define MEMRT_ALIGN_MIN 64u
#define MEMRT_ALIGN_MAX ((size_t)1 << 30)

/// Maximum length in bytes of a name of a MemInfo, policy or scope, without the closing zero.
#define MEMRT_NAME_MAX 63u

/// Acquire one more reference. The caller already holds a reference.
typedef void (*memrt_acquire_fn)(memrt_meminfo_t *mi);

/// Release one reference; the last release runs the destructor and frees the block.
/// Ownership: consumes the caller's reference. The caller must not use `mi` afterwards.
/// Threads:   earlier writes to the data happen before the destructor.
/// Failure:   aborts with a message if the count is 0. A second release of the last reference
///            is detected in this way, as long as the memory is not in use again.
typedef void (*memrt_release_fn)(memrt_meminfo_t *mi);

/// Return the first byte of the data; borrowed.
typedef void *(*memrt_get_data_fn)(memrt_meminfo_t *mi);

/// Acquire one more reference, unless the count is already zero. Return whether a reference was
/// acquired.
/// Threads: any. During the call, a table lock of the caller must keep `mi` from being freed.
typedef int (*memrt_try_acquire_fn)(memrt_meminfo_t *mi);

/// Run the destructor and free the block, for compiled code that decremented the count to zero
/// by itself.
typedef void (*memrt_call_dtor_fn)(memrt_meminfo_t *mi);

/// Return the number of references at this moment; a hint only, if several threads run.
typedef size_t (*memrt_refcount_fn)(const memrt_meminfo_t *mi);

/// Return 1 if the caller holds the only reference, so that the data may be overwritten in place,
/// else 0.
///
/// With the result 1, no other thread can get a reference until the caller shares its own. The
/// accesses of all former holders happened before the return. The data block of a resizable MemInfo
/// has no other reference either. The result is 0 from the first weak handle (weak_new) on, because
/// any thread may upgrade a handle. Not covered: `find` with the address of data, called by a
/// thread without a reference, and the owner of adopted memory, who may know the address.
/// Threads: the caller holds the reference, and no other thread uses the same reference meanwhile.
typedef int (*memrt_try_unique_fn)(const memrt_meminfo_t *mi);

/// Return the size in bytes, as requested.
typedef size_t (*memrt_size_fn)(const memrt_meminfo_t *mi);

/// Return the context that the destructor receives; for adopted memory, the object that keeps
/// the memory alive.
typedef void *(*memrt_dtor_info_fn)(const memrt_meminfo_t *mi);

/// Return whether the MemInfo was created with `readonly`.
typedef int (*memrt_readonly_fn)(const memrt_meminfo_t *mi);

/// Return the external allocator that made the block, or NULL.
typedef memrt_external_allocator_t *(*memrt_external_allocator_fn)(const memrt_meminfo_t *mi);

/// Set the name for reports; NULL or "" removes the name.
/// Failure: MEMRT_EINVAL for a name of more than MEMRT_NAME_MAX bytes; MEMRT_ENOMEM.
typedef memrt_status_t (*memrt_set_name_fn)(memrt_meminfo_t *mi, const char *name);

/// Copy the name ("" for none) into `buffer`, which has MEMRT_NAME_MAX + 1 bytes.
typedef void (*memrt_get_name_fn)(const memrt_meminfo_t *mi, char *buffer);

/// Write a description of the MemInfo for people, in one line. Write at most `length` bytes
/// with the closing zero; return the length of the whole line without the zero.
typedef size_t (*memrt_dump_fn)(const memrt_meminfo_t *mi, char *buffer, size_t length);

/// Return the policy that accounts for the MemInfo; borrowed, valid while `mi` is.
typedef memrt_policy_t *(*memrt_policy_of_fn)(const memrt_meminfo_t *mi);

#ifdef __cplusplus
}
#endif

#endif
