#ifndef MEMRT_POLICY_HOME_H
#define MEMRT_POLICY_HOME_H

#include "runtime/alloc/heap/fast_header.h"
#include "runtime/policy/policy_table.h"

/// Homes: data of policies for the fast paths of a thread, in the record of the thread.
///
/// The key of a home is the policy that a caller names. The data of the home is the shard, the
/// state of new blocks and the tiny word of the policy in force: in a scope, the subpolicy. All
/// policies, subpolicies and accounts after a fork therefore cost the same.
///
/// The slow path sets a home (home_setup.h): key and data. Allocations for the key, and frees of
/// blocks of the account, then take the fast path. A cleared home has no key, so only frees take
/// the fast path, and the next allocation for the policy takes the slow path once. A closed home
/// has a shard that never counts, so no fast path uses its data. The home of a policy without a
/// fast path is closed, too.
///
/// The thread clears homes when it enters or leaves a scope, and after a fork. memrt__home_forget()
/// clears homes when a policy is destroyed, because another policy may get its address.

/// Close all homes of a record that no other thread uses, and remove their keys.
void memrt__home_close_all(memrt__thread_t *thread);

/// Clear the homes of the calling thread, and close the home of the default policy, which is used
/// without a look at the key. The data of the first home moves to the second, so that frees still
/// find the data when the slow path sets the first home again.
void memrt__home_clear_all(memrt__thread_t *self);

/// Copy all of a home but the key.
static inline void memrt__home_copy(const memrt__home_t *from, memrt__home_t *to)
{
    to->shard = from->shard;
    to->states[0] = from->states[0];
    to->states[1] = from->states[1];
    to->tiny = from->tiny;
    to->tiny_max = from->tiny_max;
    to->account = from->account;
}

/// Clear the homes of all threads that name `policy` or its base, when `policy` is destroyed. Under
/// the lock of rank POLICIES.
void memrt__home_forget(const memrt_policy_t *policy);

/// Return whether a home is set for the policy that a caller names; NULL: the default policy.
static MEMRT__INLINE bool memrt__home_is_set_for(const memrt__home_t *home, const void *policy)
{
    return memrt__word_equals(&home->key, (size_t)policy);
}

/// Return whether a home has no key.
static inline bool memrt__home_is_unset(const memrt__home_t *home)
{
    return memrt__home_is_set_for(home, (const void *)MEMRT__NO_HOME);
}

/// Return the state of new blocks of a home. `kind` is MEMRT_KIND_BLOCK or MEMRT_KIND_INLINE.
static MEMRT__INLINE size_t memrt__home_state(const memrt__home_t *home, memrt_kind_t kind)
{
    return home->states[kind == MEMRT_KIND_INLINE];
}

/// Return a home without a key for `policy` itself, which may be a subpolicy: the scope of the
/// thread plays no part. The home is closed if the thread has no shard for the account.
static inline memrt__home_t memrt__home_of(memrt__thread_t *self, const memrt_policy_t *policy)
{
    uint32_t account = policy->account.index;
    memrt__shard_t *shard = policy->fast ? memrt__thread_shard(self, account) : NULL;
    if (MEMRT__UNLIKELY(shard == NULL)) {
        return (memrt__home_t){.shard = &memrt__closed_shard,
                               .states = {MEMRT__NO_STATE, MEMRT__NO_STATE},
                               .tiny = MEMRT__NO_TINY,
                               .account = account};
    }
    return (memrt__home_t){.shard = shard,
                           .states = {memrt__state_of(account, MEMRT_KIND_BLOCK),
                                      memrt__state_of(account, MEMRT_KIND_INLINE)},
                           .tiny = memrt__tiny_word_of(account),
                           .tiny_max = policy->tiny ? MEMRT_TINY_MAX : 0,
                           .account = account};
}

#if MEMRT_DEBUG
/// Return whether the invariants of the homes of the calling thread hold.
bool memrt__home_is_valid(void);
#endif

#endif
