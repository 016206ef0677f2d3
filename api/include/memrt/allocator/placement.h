#ifndef MEMRT_PLACEMENT_H
#define MEMRT_PLACEMENT_H

/// Placement of memory: NUMA nodes, huge pages, locks, and pages that have memory from the start.

#include <stddef.h>
#include <stdint.h>

#include <memrt/allocator.h>
#include <memrt/policy.h>
#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Use of mlock() for each mapping.
typedef enum memrt_lock {
    MEMRT_LOCK_NONE = 0,
    MEMRT_LOCK_TRY = 1,  ///< the mapping is used in any case
    MEMRT_LOCK_MUST = 2, ///< a request fails if the system refuses
} memrt_lock_t;

/// Settings of a placed allocator. Set `struct_size`; zero in any other member asks for nothing.
///
/// `pages`: kinds of pages to try in turn, such as "1G,2M,thp,4K". "1G" and "2M": pages of the
/// system's pool (hugetlb), as many as fit, or none. "thp": transparent huge pages of 2 MiB
/// wherever one fits. "4K": small pages. '!' at the end: the last kind only, or the request fails.
/// NULL: as MEMRT_HUGEPAGES.
///
/// `node`: "local": the node of the allocating thread. "1": node 1, others once it is full. "1!" or
/// "0,1!": only these nodes. "0,1!home:1": node 1 first. "interleave:0,1": pages in turn.
/// "weighted:0,1": in turn by the system's weights, Linux 6.9. "split:3:1": the first three
/// quarters on node 0, the rest on node 1. NULL: as the system decides.
///
/// `prefault`: 0: pages have memory from the first touch. 1 to 64: all pages have memory when a
/// request returns, given by so many threads, which run on the nodes of `node`.
typedef struct memrt_placement_options {
    size_t struct_size; ///< sizeof(memrt_placement_options_t)
    const char *pages;
    const char *node;
    uint32_t lock; ///< a memrt_lock_t
    uint32_t prefault;
} memrt_placement_options_t;

/// Create an allocator whose blocks lie in mappings of their own, placed as `options` ask.
///
/// Each block takes whole pages: at least two, and with "thp!" or "2M!" a multiple of 2 MiB. For
/// many small blocks, create an arena over the allocator (allocator_adaptor). Freed mappings are
/// kept for reuse within MEMRT_CACHE, MEMRT_CACHE_LIMIT and MEMRT_DECAY, for this allocator alone.
/// A resize copies. In a forked child the inherited mappings are not locked; a mapping that is
/// reused there is locked again.
///
/// Pages of the pool have memory when a request returns, and go back at the free. A fork copies
/// their contents to small pages for the child. Writes of other threads during the fork may be
/// missing there. A child made without fork handlers does not have these pages.
///
/// Ownership: `options` is copied. Hand `*out` to policy_new, allocator_adaptor or allocator_guard,
///            or call its `destroy`.
/// Failure:   MEMRT_EINVAL for bad settings, and where the system has no such node; MEMRT_ENOMEM.
///            `why` gets the reason, `length` bytes with NUL; NULL: no reason.
typedef memrt_status_t (*memrt_allocator_placed_fn)(const memrt_placement_options_t *options,
                                                    memrt_allocator_t *out, char *why,
                                                    size_t length);

/// Settings of a policy over a placed allocator, and the refusals of the system. Set `struct_size`.
///
/// A refusal is the error number of the system at the last mapping that it refused; 0: none so far.
typedef struct memrt_placement_asked {
    size_t struct_size;      ///< sizeof(memrt_placement_asked_t)
    const char *pages;       ///< as in the options; borrowed, valid while the policy is
    const char *node;        ///< as `pages`
    uint32_t lock;           ///< a memrt_lock_t
    uint32_t prefault;       ///< as in the options
    int32_t thp_refused;     ///< EINVAL where the system cannot make huge pages at a demand
    int32_t node_refused;    ///< also EINVAL where "weighted" is "interleave", before Linux 6.9
    int32_t lock_refused;    ///< ENOMEM or EPERM: the limit of locked memory (RLIMIT_MEMLOCK)
    int32_t pool_2m_refused; ///< ENOMEM: the pool has too few pages; EFAULT: the nodes have too
                             ///< few; EINVAL: no such pages
    int32_t pool_1g_refused; ///< as `pool_2m_refused`
    int32_t home_refused;    ///< ENOSYS before Linux 5.17; the pages lie on all nodes of the set
} memrt_placement_asked_t;

/// Read the placement that a policy asks for. `policy` NULL: the default policy. The policy's
/// allocator is a placed allocator, or an arena over one.
/// Failure: MEMRT_EINVAL for a small struct; MEMRT_ENOENT for a policy with another allocator.
typedef memrt_status_t (*memrt_policy_placement_fn)(const memrt_policy_t *policy,
                                                    memrt_placement_asked_t *out);

/// Number of NUMA nodes that memrt_placement_t has room for.
#define MEMRT_NODES 64u

/// Value of a member of memrt_placement_t that the system does not report.
#define MEMRT_PLACEMENT_UNKNOWN UINT64_MAX

/// Place of the pages of a range, in bytes. Set `struct_size`.
typedef struct memrt_placement {
    size_t struct_size; ///< sizeof(memrt_placement_t)
    uint64_t bytes;     ///< the pages that contain the range
    uint64_t resident;  ///< pages in memory; pages that were never written do not count
    uint64_t huge;      ///< of the resident pages: in huge pages. Linux before 6.7: unknown, but
                        ///< for ranges in pages of the pool
    uint64_t locked;    ///< pages of locked mappings, and of the pool
    uint64_t swapped;   ///< pages in swap space
    uint64_t by_node[MEMRT_NODES]; ///< resident bytes by node, shared zero pages left out; the
                                   ///< first is unknown if the system has no nodes
} memrt_placement_t;

/// Read the place of the pages of any range of this process. The figures are the system's, so
/// they show the result of a request, not its settings.
///
/// Threads: other threads may touch pages meanwhile. Costs about 20 ns for each page, and a reading
///          of /proc/self/smaps.
/// Failure: MEMRT_EINVAL for a small struct or a range past the address space; MEMRT_ENOTSUP where
///          /proc cannot be read.
typedef memrt_status_t (*memrt_placement_read_fn)(const void *address, size_t size,
                                                  memrt_placement_t *out);

#ifdef __cplusplus
}
#endif

#endif
