#ifndef MEMRT_MEMORY_STATS_H
#define MEMRT_MEMORY_STATS_H

/// Memory behind all blocks: requested and allocated bytes, pages and addresses.

#include <stddef.h>
#include <stdint.h>

#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Memory behind the blocks of all policies, in bytes.
///
/// requested <= allocated <= active <= mapped; mapped == active + cached + tables; metadata ==
/// tables + records.
///
/// Blocks of the heap, the default allocator, count with their rounding and their pages. Blocks of
/// other allocators (`outside`) count as the bytes that memrt requested from these allocators,
/// because their rounding and pages are not known. Blocks that a guard keeps after their free count
/// as allocated if the guard takes blocks from the heap. The memory of an allocator of a program
/// that takes its blocks from the heap counts twice.
///
/// The figures are exact when no other thread is inside memrt. Otherwise each figure may be off by
/// the work of other threads during the read, and the inequalities hold nevertheless. In a forked
/// child, blocks in the caches of the parent's other threads are lost and count as allocated.
typedef struct memrt_memory_stats {
    size_t struct_size; ///< sizeof(memrt_memory_stats_t)
    uint64_t requested; ///< live bytes, as memrt_stats_t.live
    uint64_t headers;   ///< headers of live blocks, and padding for alignment
    uint64_t allocated; ///< blocks in use, with headers, rounding to size classes and to pages
    uint64_t active;    ///< pages with blocks in use, or with blocks in thread caches
    uint64_t cached;    ///< pages without such blocks, kept for reuse
    uint64_t tables;    ///< tables of the page heap and of mappings
    uint64_t mapped;    ///< addresses with pages: active + cached + tables
    uint64_t retained;  ///< addresses of the heap that memrt keeps without pages
    uint64_t resident;  ///< pages in memory now, of the memory that memrt has mapped itself
    uint64_t records;   ///< memory of malloc for threads, policies, scopes, the live set and sites
    uint64_t metadata;  ///< tables + records
    uint64_t outside;   ///< part of `allocated`, `active` and `mapped` in other allocators
    uint64_t
        huge_asked; ///< whole huge pages of 2 MiB in mappings for which memrt asks for huge pages
    uint64_t huge_got; ///< bytes of these mappings in huge pages now; UINT64_MAX: the system does
                       ///< not report huge pages, before Linux 6.7
} memrt_memory_stats_t;

/// Read the memory behind all blocks. The time grows with the resident memory: the system reports
/// the pages of each mapping.
///
/// Failure: MEMRT_EINVAL: `out` is NULL, or struct_size is not set.
typedef memrt_status_t (*memrt_memory_stats_fn)(memrt_memory_stats_t *out);

#ifdef __cplusplus
}
#endif

#endif
