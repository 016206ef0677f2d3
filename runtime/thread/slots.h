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
    unsigned replaced;           ///< own; home of a policy that was last replaced by another: 0, 1
} memrt__scope_slot_t;

/// Slot of runtime/policy/home.h: data of a policy for the fast paths.
///
/// Only `key` changes when another thread clears the home. Frees of blocks of the account still use
/// the home: `shard` is always the shard of the account that `states` and `tiny` name.
typedef struct memrt__home {
    size_t key; ///< written by the owner, cleared by any thread; policy that a caller names (NULL:
                ///< the default policy), as a number; MEMRT__NO_HOME: the home is unset
    memrt__shard_t *shard; ///< own; shard for the blocks; never NULL
    size_t states[2]; ///< own; state of new blocks, and of new MemInfos; MEMRT__NO_STATE: of none
    size_t tiny;      ///< own; word of tiny blocks, less the size; MEMRT__NO_TINY: of no block
    size_t tiny_max;  ///< own; largest tiny block; 0: none
    uint32_t account; ///< own; index of the account; MEMRT__NO_ACCOUNT: none
} memrt__home_t;

#define MEMRT__NO_HOME SIZE_MAX
#define MEMRT__NO_STATE SIZE_MAX
#define MEMRT__NO_TINY ((size_t)PTRDIFF_MAX)
#define MEMRT__NO_ACCOUNT UINT32_MAX

/// Homes of a record: two for the policies that the thread used last, and one for MemInfos of the
/// default policy, which allocate() serves without a look at the key.
#define MEMRT__HOMES 3u
#define MEMRT__DEFAULT_HOME 2u

/// Slot of runtime/observe/tracking.h.
typedef struct memrt__sampling_slot {
    size_t until_sampled; ///< own; bytes up to the next sampled allocation
    size_t sample;        ///< own; mean distance that `until_sampled` was drawn for
    uint64_t random;      ///< own; state of the random number generator
} memrt__sampling_slot_t;

/// Slot of runtime/alloc/heap/thread_cache.h.
typedef struct memrt__cache_slot {
    memrt__bins_t bins;
    size_t limits[2];  ///< own; bytes that all bin limits allow: small blocks, medium blocks
    size_t live;       ///< own; bytes in use in the process when a bin last ran empty
    size_t must_empty; ///< written under THREADS; not 0: the thread must empty its bins
} memrt__cache_slot_t;

/// Sums of counters of a thread, over all accounts.
typedef struct memrt__usage {
    size_t bytes_in, bytes_out, made, freed;
} memrt__usage_t;

/// Slot of runtime/stats/thread_stats.h.
typedef struct memrt__usage_slot {
    memrt__usage_t retired; ///< under THREADS; counts of accounts that no longer exist
    memrt__usage_t before;  ///< under THREADS; counts of earlier owners of the record
    size_t started;         ///< own, release; nanoseconds since 1970; 0: not known yet
} memrt__usage_slot_t;

/// Slot of runtime/meminfo/references.h.
typedef struct memrt__dtor_slot {
    unsigned depth;            ///< own; nesting depth of running destructors
    memrt_meminfo_t *deferred; ///< own; first MemInfo with a deferred destructor; NULL: none
} memrt__dtor_slot_t;

#endif
