#ifndef MEMRT_PROCESS_H
#define MEMRT_PROCESS_H

/// Functions for the whole process.

#include <stddef.h>
#include <stdint.h>

#include <memrt/policy.h>
#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Give cached memory of all policies back; return the number of bytes. Another thread empties
/// its thread cache later: when the thread next frees a block, or runs out of blocks of a size
/// class.
typedef size_t (*memrt_release_unused_fn)(void);

/// Write an out-of-memory report: likely reasons why `policy` (NULL: the default one) refused
/// `size` bytes (0: any size), in a few lines for people.
///
/// The report has live and cached bytes, the limits of memrt that apply to the calling thread, and
/// the system limits in force. The 3 scopes with the most live bytes follow, if there are any. As
/// far as allocations were tracked, the report also has the allocation sites that hold most. Last
/// come the largest live buffers that have a name or a named reference.
///
/// Write at most `length` bytes with the closing zero; return the length of the whole text
/// without the zero. The call allocates no memory.
typedef size_t (*memrt_explain_shortage_fn)(const memrt_policy_t *policy, size_t size, char *text,
                                            size_t length);

/// Stop running destructors: from now on, a release only frees memory. Use the slot at the end
/// of a process, when the code of destructors, or their interpreter, goes away. Repeated calls
/// are allowed.
typedef void (*memrt_shutdown_fn)(void);

/// Content of memory that memrt has mapped.
typedef enum memrt_mapping_use {
    MEMRT_MAPPING_BLOCK = 1,  ///< one block in use, with its header and rounding
    MEMRT_MAPPING_SPANS = 2,  ///< smaller blocks, in use and cached
    MEMRT_MAPPING_CACHED = 3, ///< a freed block, kept for reuse
    MEMRT_MAPPING_RECORDS = 4 ///< tables of memrt
} memrt_mapping_use_t;

/// Range of addresses that memrt has mapped. Pages that were never written are not in memory.
typedef struct memrt_mapping {
    size_t struct_size; ///< sizeof(memrt_mapping_t)
    uint64_t address;
    uint64_t bytes;
    uint64_t use; ///< memrt_mapping_use_t
} memrt_mapping_t;

/// List the memory that memrt has mapped, in no order. `*count` is the number of elements of `out`
/// on entry, and the number of ranges on return. Without room for all ranges, the call fills the
/// elements that exist. The caller sets struct_size in each element.
///
/// Memory of the C library's malloc and of other allocators is not listed. A mapping of less than
/// 1 MiB may be missing, because the table has room for one mapping in each MiB of addresses.
///
/// Threads: mappings that other threads make or unmap during the call may be listed or not.
/// Failure: MEMRT_EINVAL: `count` is NULL, `out` is NULL but `*count` is not 0, or struct_size is
///          not set. Then `*count` is unchanged.
typedef memrt_status_t (*memrt_mappings_fn)(memrt_mapping_t *out, size_t *count);

#ifdef __cplusplus
}
#endif

#endif
