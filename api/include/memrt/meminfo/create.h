#ifndef MEMRT_CREATE_H
#define MEMRT_CREATE_H

/// Creation of MemInfos.

#include <stddef.h>

#include <memrt/meminfo.h>
#include <memrt/policy.h>
#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Settings of a new MemInfo. Set `struct_size`; zero in any other member selects the default. A
/// NULL pointer to the struct selects all defaults.
typedef struct memrt_new_options {
    size_t struct_size;     ///< sizeof(memrt_new_options_t)
    memrt_policy_t *policy; ///< borrowed; NULL: the default policy
    size_t alignment;       ///< power of two up to MEMRT_ALIGN_MAX; 0: alignment of the policy
    int zeroed;             ///< non-zero: all bytes of the data are zero
    int readonly;           ///< non-zero: read-only, for memrt_api_t.readonly and bindings
    memrt_dtor_fn dtor;     ///< destructor; NULL: none
    void *dtor_info;        ///< third argument of `dtor`
    memrt_external_allocator_t *external; ///< allocator of the block; NULL: the policy's allocator.
                                          ///< Must be NULL for a resizable MemInfo
    const char *name;                     ///< copied, at most MEMRT_NAME_MAX bytes; NULL: no name
    size_t align_offset; ///< byte of the data whose address is a multiple of the alignment: a
                         ///< multiple of 8; 0: the first byte. Only for meminfo_new
} memrt_new_options_t;

/// Largest alignment with an `align_offset` that is no multiple of the alignment.
#define MEMRT_ALIGN_OFFSET_MAX ((size_t)1 << 15)

/// Create a MemInfo over `nbytes` bytes, count 1, data aligned to 64 bytes. NULL: out of
/// memory.
typedef memrt_meminfo_t *(*memrt_allocate_fn)(size_t nbytes);

/// Create a MemInfo as `allocate` does, from `policy`, borrowed; NULL: the default policy. Costs
/// less than `meminfo_new` with the policy in the options. Returns NULL when out of memory.
typedef memrt_meminfo_t *(*memrt_allocate_from_fn)(size_t nbytes, memrt_policy_t *policy);

/// Create a MemInfo as `allocate` does, with memory from `allocator` (NULL: as `allocate`).
/// NULL: out of memory.
typedef memrt_meminfo_t *(*memrt_allocate_external_fn)(size_t nbytes,
                                                       memrt_external_allocator_t *allocator);

/// Create a MemInfo over foreign `data` of unknown size; the last release calls `dtor(data)`.
/// Ownership: memrt owns `data`, unless the call returns NULL.
/// Failure:   NULL: out of memory; the caller still owns `data`.
typedef memrt_meminfo_t *(*memrt_manage_memory_fn)(void *data, memrt_managed_dtor_fn dtor);

/// Create a MemInfo with its own block of `size` bytes, count 1. A size of 0 still yields an
/// address.
/// With `align_offset`, for example the size of a file's header, the bytes behind the header have
/// the alignment.
/// Failure: MEMRT_EINVAL for an alignment that is too large or not a power of two, and for a
///          name that is too long. MEMRT_EINVAL for an `align_offset` that is no multiple of 8, or
///          is used with `external`, a policy over files, or an alignment (of the options, else
///          of the policy) above MEMRT_ALIGN_OFFSET_MAX. MEMRT_ENOMEM.
typedef memrt_status_t (*memrt_meminfo_new_fn)(size_t size, const memrt_new_options_t *options,
                                               memrt_meminfo_t **out);

/// Create a MemInfo over memory that the caller hands over, count 1. `options->dtor` frees the
/// memory after the last release.
/// Ownership: memrt owns `data` on MEMRT_OK; on failure the caller still owns `data`.
/// Failure:   MEMRT_EINVAL for NULL data with a non-zero size, and for an option that does not
///            apply (zeroed, alignment, align_offset, external); MEMRT_ENOMEM.
typedef memrt_status_t (*memrt_meminfo_adopt_fn)(void *data, size_t size,
                                                 const memrt_new_options_t *options,
                                                 memrt_meminfo_t **out);

#ifdef __cplusplus
}
#endif

#endif
