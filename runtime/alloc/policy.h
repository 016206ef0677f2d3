#ifndef MEMRT_ALLOC_POLICY_H
#define MEMRT_ALLOC_POLICY_H

#include <memrt/external.h>

#include "runtime/alloc/allocator.h"
#include "runtime/base/options.h"
#include "runtime/stats/thread.h"

/// An allocator with its settings and its account. Blocks name their policy by index.
///
/// A policy without references stays until the last of its blocks is gone, so that a block can
/// always find the allocator that made it; then a sweep destroys it and its index is free. It keeps
/// nothing for reuse meanwhile.
/// Invariant: the last thing that a free touches of a policy is the count `free` of a shard.
struct memrt_policy {
    _Alignas(MEMRT__CACHE_LINE) memrt__account_t account; ///< its index is that in new blocks
    uint32_t index;                                       ///< fixed; as callers know it
    memrt__level_t level;                                 ///< what its accounts add up to
    memrt_allocator_t allocator;                          ///< fixed
    size_t alignment;                                     ///< bytes, fixed
    bool tiny;   ///< fixed; few bytes may come without alignment, in tiny blocks
    bool quick;  ///< fixed; its blocks may be taken from and given to the pool's caches directly
    size_t refs; ///< atomic; 0: nothing may be allocated from it any more
    memrt__limits_t limits;               ///< fixed; its own, all MEMRT__INHERIT where it has none
    char name[MEMRT_NAME_MAX + 1];        ///< fixed
    size_t traced;                        ///< relaxed; its number in a trace; 0: it was in none
    memrt__shard_t shared;                ///< see memrt__account_t.shared
    size_t shared_sizes[MEMRT_SIZE_BINS]; ///< its `sizes`, of a part
    struct memrt_policy *next_dead;       ///< of the sweep that took it out of the table
    /* Of a part of a policy, what is born in a scope or was inherited; see scope.h, inherited.h: */
    struct memrt_policy *base;      ///< fixed; whose settings and allocator it has; else itself
    memrt_scope_t *scope;           ///< fixed; NULL: of none
    struct memrt_policy *next_part; ///< under the lock of rank POLICIES; of the scope
    /* Of others: */
    uint32_t parts; ///< under that lock; how many it has
};

/// The policy at each index, or NULL. Slots are written under the lock of rank POLICIES; the holder
/// of a block or reference may read its slot without.
extern memrt_policy_t *memrt__policies[MEMRT__ACCOUNTS];

static inline memrt_policy_t *memrt__policy_of(const memrt_meminfo_t *mi)
{
    return memrt__policies[mi->policy];
}

extern memrt_policy_t memrt__default_policy;

static inline memrt_policy_t *memrt__policy_default(void)
{
    return &memrt__default_policy;
}

static inline bool memrt__policy_is_part(const memrt_policy_t *policy)
{
    return policy->base != policy;
}

static inline memrt_policy_t *memrt__policy_or_default(memrt_policy_t *policy)
{
    return policy == NULL ? memrt__policy_default() : policy;
}

/// Make the default policy, index 0, according to the options. Once, before anything else.
void memrt__policy_start(void);

/// The part of `base` in a scope, made where there is none. NULL: out of memory or of indices. Both
/// must be held by the caller. A part that nobody holds is the thread's to use while both are, and
/// memrt__parts_gone is as it was.
memrt_policy_t *memrt__policy_part(memrt_policy_t *base, memrt_scope_t *scope);

/// The lowest index that is free; MEMRT__ACCOUNTS: none is. Under the lock of rank POLICIES.
uint32_t memrt__policy_free_index(void);

/// Have new blocks of a policy name an index, which was free or is that of another one's before.
/// Under the lock of rank POLICIES.
void memrt__policy_put(memrt_policy_t *policy, uint32_t index);

/// Put `part`, all zero, at an index as a part of `base`, in `scope` unless that is NULL. Under the
/// lock of rank POLICIES.
void memrt__policy_put_part(memrt_policy_t *part, memrt_policy_t *base, memrt_scope_t *scope,
                            uint32_t index);

/// Counts parts that were destroyed, whose address others may have by now.
extern size_t memrt__parts_gone;

/// Destroy the policies that nobody holds and that have no block left.
void memrt__policy_sweep(void);

/// The functions of memrt_api_t of the same names.
memrt_status_t memrt__policy_new(const memrt_policy_options_t *options,
                                 memrt_policy_t **out) MEMRT_MUST_CHECK;
void memrt__policy_acquire(memrt_policy_t *policy);
void memrt__policy_release(memrt_policy_t *policy);
memrt_policy_t *memrt__policy_at(uint32_t index);
uint32_t memrt__policy_limit(void);

/// Whether a policy lives at that address, which may be any, and somebody holds it.
bool memrt__policy_is_held(const memrt_policy_t *policy);

/// Bytes that the allocator of `policy` keeps for reuse, 0 for what the pool keeps for all
/// policies; NULL: those of all allocators.
size_t memrt__policy_cached(const memrt_policy_t *policy);

/// Abort if a freed block that the guard of a policy keeps was written to.
void memrt__policy_verify_dead(void);

/// Where the freed block that `address` lies in was made and freed, as lines that begin with a
/// line's end. False, and "": no guard of a policy keeps such a block.
bool memrt__policy_tell_dead(uintptr_t address, char *text, size_t length);

/// Have all allocators give cached memory back; returns bytes.
size_t memrt__policy_release_unused(void);

/// Whether a name is short enough to be one.
bool memrt__is_name(const char *name);

#endif
