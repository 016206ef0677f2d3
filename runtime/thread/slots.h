#ifndef MEMRT_THREAD_SLOTS_H
#define MEMRT_THREAD_SLOTS_H

#include <stddef.h>
#include <stdint.h>

#include <memrt/meminfo.h>

#include "runtime/thread/bin_layout.h"
#include "runtime/thread/shard_layout.h"

/// Layouts of the slots in the record of a thread. Each slot belongs to one module, which sets
/// up and clears the slot (memrt__thread_add_module()). "Own" marks a member that only the thread
/// of the record writes; "THREADS" means under the lock of that rank.

/// Slot of runtime/policy/scope.h.
typedef struct memrt__scope_slot {
    struct memrt_scope *current; ///< own; current scope; NULL: no scope
    struct memrt_policy
        *subpolicy_of;               ///< own; policy that `subpolicy` was looked up for; NULL: none
    struct memrt_policy *subpolicy;  ///< own; subpolicy of `subpolicy_of` in the current scope
    memrt__shard_t *subpolicy_shard; ///< own; shard for `subpolicy`; NULL: the fast path is closed
    size_t subpolicies_gone;         ///< own; memrt__subpolicies_gone at the time of that look-up
} memrt__scope_slot_t;

/// Slot of runtime/observe/tracking.h.
typedef struct memrt__sampling_slot {
    size_t until_sampled; ///< own; bytes up to the next sampled allocation
    size_t sample;        ///< own; mean distance that `until_sampled` was drawn for
    uint64_t random;      ///< own; state of the random number generator
} memrt__sampling_slot_t;

/// Slot of runtime/alloc/heap/thread_cache.h.
typedef struct memrt__cache_slot {
    memrt__bin_t bins[MEMRT__CLASSES];
    size_t limits[2];  ///< own; bytes that all bin limits allow: small blocks, large blocks
    size_t live;       ///< own; bytes in use in the process when a bin last ran empty
    size_t must_empty; ///< written under THREADS; not 0: the thread must empty its bins
} memrt__cache_slot_t;

/// Slot of runtime/meminfo/references.h.
typedef struct memrt__dtor_slot {
    unsigned depth;            ///< own; nesting depth of running destructors
    memrt_meminfo_t *deferred; ///< own; first MemInfo with a deferred destructor; NULL: none
} memrt__dtor_slot_t;

#endif
