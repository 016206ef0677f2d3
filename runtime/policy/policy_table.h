#ifndef MEMRT_POLICY_POLICY_TABLE_H
#define MEMRT_POLICY_POLICY_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include <memrt/scope.h>

#include "runtime/alloc/allocator.h"
#include "runtime/config/options.h"
#include "runtime/stats/tally.h"

/// Policy table: policies by index, with their fields.

/// Alignment of a policy whose data is at 16 modulo 64, as malloc's is. Programs that treat data at
/// a multiple of 64 in another way then behave as they do on malloc.
#define MEMRT__ALIGN_OFFSET ((size_t)16)

/// Reference operations through a table that counts. Any thread, relaxed add.
typedef struct memrt__reference_words {
    size_t acquired, released;
} memrt__reference_words_t;

/// An allocator with its settings and an account. Blocks name their policy by index.
///
/// A policy without references stays until its last block is freed, so a block can always find its
/// allocator. A sweep then destroys the policy and frees the index. In the meantime the policy
/// caches nothing. memrt__policy_at() can acquire such a policy again: allocations then work, and
/// freed memory is still not cached.
///
/// Invariant: the update of a shard's count `freed` is the last access of a free to the policy.
struct memrt_policy {
    _Alignas(MEMRT__CACHE_LINE) memrt__account_t account; ///< account.index: index in new blocks
    uint32_t index;                                       ///< fixed; the index that callers see
    memrt__level_t level;        ///< aggregate of the accounts of the policy
    memrt_allocator_t allocator; ///< fixed; default policy: fixed at the first use
    size_t alignment;            ///< fixed; bytes
    bool tiny;   ///< fixed as `allocator`; no alignment was requested: small sizes use tiny blocks
    bool fast;   ///< fixed as `allocator`; the fast path may use thread caches for new blocks
    bool bump;   ///< fixed as `allocator`; an arena with the alignment of the header
    size_t refs; ///< atomic; 0: the policy caches nothing from now on
    char name[MEMRT_NAME_MAX + 1];  ///< fixed
    size_t traced;                  ///< relaxed; number in an event trace; 0: in none
    memrt__shard_t shared;          ///< see memrt__account_t.shared
    struct memrt_policy *next_dead; ///< next policy removed by the same sweep
    /* Fields of a subpolicy (of a scope or a fork account); see subpolicy.h, fork_accounts.h: */
    struct memrt_policy *base; ///< fixed; policy with the settings and allocator; a base: itself
    memrt_scope_t *scope;      ///< fixed; NULL: no scope
    struct memrt_policy *next_in_scope; ///< under the lock of rank POLICIES; next in the scope
    struct memrt_policy *next_of_base;  ///< under the same lock; next subpolicy of the base
    struct memrt_policy **link_of_base; ///< under the same lock; pointer that leads here
    /* Fields of a base policy: */
    memrt__reference_words_t references;
    memrt__limits_t limits; ///< under the lock of rank POLICIES, read without; MEMRT__INHERIT for
                            ///< each limit not set
    uint32_t subpolicies;   ///< under the lock of rank POLICIES; their number
    struct memrt_policy *first_subpolicy; ///< under the same lock; latest first
};

/// Policy at each index, or NULL.
///
/// Threads: writers hold the lock of rank POLICIES. A thread with a reference to the policy, or
/// with a block of the policy, reads the slot without the lock.
extern MEMRT__HIDDEN memrt_policy_t *memrt__policies[MEMRT__ACCOUNTS];

static inline memrt_policy_t *memrt__policy_of(const memrt_meminfo_t *mi)
{
    return memrt__policies[mi->policy];
}

extern MEMRT__HIDDEN memrt_policy_t memrt__default_policy;

/// Whether the allocator of the default policy may change. Atomic.
typedef enum memrt__default_state {
    MEMRT__DEFAULT_UNUSED,   ///< yes: no memory was requested from the policy
    MEMRT__DEFAULT_CHANGING, ///< changes now, under the lock of rank POLICIES; requests wait
    MEMRT__DEFAULT_FINAL     ///< no
} memrt__default_state_t;

extern MEMRT__HIDDEN size_t memrt__default_state;

/// Let the allocator of the default policy be final, before the first request to the policy.
MEMRT__COLD void memrt__policy_finish_default(void);

/// Return true if a policy has references.
static inline bool memrt__policy_has_references(const memrt_policy_t *policy)
{
    return memrt__load_acquire(&policy->refs) != 0;
}

static inline memrt_policy_t *memrt__policy_default(void)
{
    return &memrt__default_policy;
}

static inline bool memrt__policy_is_subpolicy(const memrt_policy_t *policy)
{
    return policy->base != policy;
}

static inline memrt_policy_t *memrt__policy_or_default(memrt_policy_t *policy)
{
    return policy == NULL ? memrt__policy_default() : policy;
}

static inline bool memrt__is_fork_account(const memrt_policy_t *policy)
{
    return policy->account.origin == MEMRT__FORK_ACCOUNT;
}

/// First index that was never used. Under the lock of rank POLICIES.
extern uint32_t memrt__policy_table_end;

/// Return the lowest free index, or MEMRT__ACCOUNTS if all are in use. Under the lock of rank
/// POLICIES.
uint32_t memrt__policy_free_index(void);

/// Enter a policy at `index`; new blocks of the policy then name `index`. The index is free, or
/// belonged to another policy until now. Under the lock of rank POLICIES.
void memrt__policy_put(memrt_policy_t *policy, uint32_t index);

/// Make the index of a policy free. Under the lock of rank POLICIES.
void memrt__policy_remove(const memrt_policy_t *policy);

/// Return the policy at `address`, or NULL without a policy there. `address` may be any address.
/// Under the lock of rank POLICIES.
const memrt_policy_t *memrt__policy_find(const memrt_policy_t *address);

/// Return memrt__policy_table_end. Takes the lock of rank POLICIES.
uint32_t memrt__policy_limit(void);

/// Return true if a policy has references, subpolicies or live blocks. Under the lock of rank
/// POLICIES.
bool memrt__policy_is_used(const memrt_policy_t *policy);

/// Let all allocations take the slow path if a policy in the table has a fast path, and a mean
/// distance of guarded blocks below MEMRT__GUARD_PAGES_CLOSE. Under the lock of rank POLICIES.
void memrt__policy_follow_guards(void);

/// Return true if `name` has at most MEMRT_NAME_MAX characters.
bool memrt__is_name(const char *name);

#if MEMRT_DEBUG
/// Return whether the invariants of the table, of its policies and of their accounts hold. Takes
/// the locks of ranks POLICIES and THREADS.
bool memrt__policy_table_is_valid(void);
#endif

#endif
