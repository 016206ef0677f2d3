#ifndef MEMRT_STATS_H
#define MEMRT_STATS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// One account: the whole process, or one policy. Always on.
///
/// Exact when no other thread is inside memrt. While others work, each number is a sum over threads
/// that were read one after the other, so it may be off by what they did meanwhile; live figures
/// are never below zero. Sizes are those asked for, without header and padding, unless the line
/// says otherwise.
///
/// `alloc`, `free`, `mi_alloc` and `mi_free` are Numba's counters with Numba's meaning, except that
/// a failed request counts in `failed` alone.
typedef struct memrt_stats {
    size_t struct_size;  ///< set by the caller to sizeof(memrt_stats_t)
    uint64_t alloc;      ///< blocks ever made (an inline MemInfo is one, a resizable one two)
    uint64_t free;       ///< blocks ever freed
    uint64_t mi_alloc;   ///< MemInfos ever made
    uint64_t mi_free;    ///< MemInfos ever destroyed
    uint64_t realloc;    ///< blocks ever resized
    uint64_t failed;     ///< requests for a block, header or resize that were refused
    uint64_t live;       ///< bytes in use now
    uint64_t peak;       ///< most bytes in use at once since start or reset
    uint64_t peak_error; ///< bytes by which `peak` may be off either way; 0: exact
    uint64_t total;      ///< bytes ever allocated; growth by realloc counts, shrinking does not
    uint64_t adopted;    ///< bytes of live adopted buffers; not part of `live`
    uint64_t cached;     ///< bytes kept for reuse
    uint64_t reserved;   ///< bytes taken from allocators for live blocks, with headers and padding,
                         ///< and cached
    /* What a forked process has of those that it was forked from: */
    uint64_t inherited;        ///< bytes of `live` that were born before the fork
    uint64_t inherited_blocks; ///< blocks born before the fork that are not freed
    uint64_t inherited_error;  ///< bytes of `live` beyond `inherited` that may be, too: at the fork
                               ///< there was no memory to tell them from what came later
    uint64_t exported;         ///< references that other libraries have now (MEMRT_HOLDER_EXPORT)
} memrt_stats_t;

/// Bins of a histogram of sizes: the first for empty blocks, then one for each doubling, from 1
/// byte, 2 to 3, 4 to 7 on; the last for all that is larger.
#define MEMRT_SIZE_BINS 48u

/// One live buffer, as tracking knows it.
typedef struct memrt_live {
    uint64_t id;       ///< serial number, unique in the process, in order of birth
    uintptr_t meminfo; ///< address of the MemInfo, a key; it may be gone by now
    uintptr_t data;    ///< address of the first byte
    size_t size;       ///< bytes
    size_t refcount;   ///< references at the time of the snapshot
    uint64_t age_ns;   ///< nanoseconds since birth, or since the system's clock ticked before it
    uint64_t thread;   ///< operating system's id of the thread of birth
    uint32_t policy;   ///< index of its policy
    uint32_t kind;     ///< a memrt_kind_t
    char name[64];     ///< "" when it has none
} memrt_live_t;

/// Why somebody holds a MemInfo under a name.
typedef enum memrt_holder_kind {
    MEMRT_HOLDER_REFERENCE = 1, ///< code that uses it
    MEMRT_HOLDER_EXPORT = 2,    ///< handed to another library, which gives it back by a call
} memrt_holder_kind_t;

/// References to one MemInfo that were taken under one name, as memrt_api_t.holders lists them.
typedef struct memrt_holder {
    size_t count;    ///< how many there are
    uint64_t age_ns; ///< nanoseconds since the first of them was taken
    uint64_t thread; ///< operating system's id of the thread that took the first
    uint32_t kind;   ///< a memrt_holder_kind_t
    char name[64];   ///< the name
} memrt_holder_t;

/// When allocations fail on purpose.
typedef struct memrt_failure_plan {
    size_t struct_size;   ///< sizeof(memrt_failure_plan_t)
    uint64_t nth;         ///< first request to fail, counted from 1 after the plan is set; 0: none
    uint64_t every;       ///< 0: fail just the nth; 1: all from the nth on; k: every k-th from it
    int this_thread_only; ///< non-zero: only requests of the calling thread count and fail
} memrt_failure_plan_t;

/// One row of the table of MEMRT_* options.
typedef struct memrt_option {
    const char *name; ///< "MEMRT_CHECK"
    char value[32];   ///< value in force, as text
    const char *help; ///< one sentence, with unit and default
} memrt_option_t;

#ifdef __cplusplus
}
#endif

#endif
