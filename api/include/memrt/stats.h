#ifndef MEMRT_STATS_H
#define MEMRT_STATS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Statistics of one account: the whole process, one policy or one scope. Always on.
///
/// The numbers are exact when no other thread is inside memrt. Each number is a sum over threads,
/// which are read one after the other. So a number may be off by the work of other threads during
/// the read. Live figures are never below zero. Sizes are requested sizes, without header and
/// padding, unless the comment of the member states otherwise.
///
/// `alloc`, `free`, `mi_alloc` and `mi_free` are Numba's counters with Numba's meaning, except that
/// a failed request counts only in `failed`.
typedef struct memrt_stats {
    size_t struct_size;  ///< set by the caller to sizeof(memrt_stats_t)
    uint64_t alloc;      ///< blocks ever made (1 per inline MemInfo, 2 per resizable MemInfo)
    uint64_t free;       ///< blocks ever freed
    uint64_t mi_alloc;   ///< MemInfos ever made
    uint64_t mi_free;    ///< MemInfos ever destroyed
    uint64_t realloc;    ///< blocks ever resized
    uint64_t failed;     ///< requests for a block, header or resize that were refused
    uint64_t live;       ///< bytes in use now
    uint64_t peak;       ///< maximum bytes in use at once since the start or the last reset
    uint64_t peak_error; ///< bytes by which `peak` may be off either way; 0: exact
    uint64_t total;      ///< bytes ever allocated; growth by realloc counts, shrinking does not
    uint64_t adopted;    ///< bytes of live adopted buffers; not part of `live`
    uint64_t cached;     ///< bytes kept for reuse
    uint64_t reserved;   ///< bytes taken from allocators for live blocks, with headers and padding,
                         ///< plus `cached`
    /* Memory that a forked process inherited from its parent: */
    uint64_t inherited;        ///< bytes of `live` that were allocated before the fork
    uint64_t inherited_blocks; ///< blocks that were allocated before the fork and are not freed
    uint64_t inherited_error;  ///< bytes of `live`, beyond `inherited`, that may also date from
                               ///< before the fork: the fork had no memory for a separate account
    /* References outside of memrt: */
    uint64_t exported; ///< references that other libraries hold now (MEMRT_HOLDER_EXPORT)
} memrt_stats_t;

/// Number of bins in a histogram of sizes. The first bin counts empty blocks. The next bins count 1
/// byte, 2 to 3 bytes, 4 to 7 bytes, and so on. The last bin counts all larger sizes.
#define MEMRT_SIZE_BINS 48u

/// Row of the live list: one live buffer that tracking knows.
typedef struct memrt_live {
    uint64_t id;       ///< serial number, unique in the process, in order of allocation
    uintptr_t meminfo; ///< address of the MemInfo, only as a key; the MemInfo may be freed by now
    uintptr_t data;    ///< address of the first byte
    size_t size;       ///< bytes
    size_t refcount;   ///< references at the time of the snapshot
    uint64_t age_ns;   ///< nanoseconds since the last tick of the system's clock before allocation
    uint64_t thread;   ///< operating system's id of the allocating thread
    uint32_t policy;   ///< index of the policy
    uint32_t kind;     ///< a memrt_kind_t
    char name[64];     ///< name; "" for none
} memrt_live_t;

/// Purpose of a named reference.
typedef enum memrt_holder_kind {
    MEMRT_HOLDER_REFERENCE = 1, ///< code that uses the MemInfo
    MEMRT_HOLDER_EXPORT = 2,    ///< export to another library, which releases by a call
} memrt_holder_kind_t;

/// Row of memrt_api_t.holders: the references to one MemInfo under one kind and name.
typedef struct memrt_holder {
    size_t count;    ///< number of references
    uint64_t age_ns; ///< nanoseconds since the first reference was acquired
    uint64_t thread; ///< operating system's id of the thread that acquired the first reference
    uint32_t kind;   ///< a memrt_holder_kind_t
    char name[64];   ///< the name
} memrt_holder_t;

/// Plan of fault injection: the requests that fail on purpose.
typedef struct memrt_failure_plan {
    size_t struct_size;   ///< sizeof(memrt_failure_plan_t)
    uint64_t nth;         ///< first request to fail, counted from 1 after the plan is set; 0: none
    uint64_t every;       ///< 0: only the nth fails; k: every k-th from the nth on, 1 for all
    int this_thread_only; ///< non-zero: only requests of the thread that set the plan count
} memrt_failure_plan_t;

/// Row of the table of MEMRT_* options.
typedef struct memrt_option {
    const char *name; ///< "MEMRT_CHECK"
    char value[32];   ///< value in force, as text
    const char *help; ///< one sentence, with unit and default
} memrt_option_t;

#ifdef __cplusplus
}
#endif

#endif
