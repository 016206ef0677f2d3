#include "runtime/policy/policy_table.h"

#include <sched.h>
#include <string.h>

#include "runtime/alloc/guard/guard_pages.h"
#include "runtime/base/size.h"
#include "runtime/base/slow_path.h"
#include "runtime/os/lock.h"
#include "runtime/stats/retire.h"

/* The table has a policy for each used index, and NULL for each other index. A set of bits finds
   the lowest free index. The lock of rank POLICIES guards all changes. */

memrt_policy_t *memrt__policies[MEMRT__ACCOUNTS];
memrt_policy_t memrt__default_policy;
size_t memrt__default_state;
uint32_t memrt__policy_table_end;

#define WORD_BITS 64u
#define WORDS ((MEMRT__ACCOUNTS + WORD_BITS - 1) / WORD_BITS)

/* Bit of each used index. Under the lock of rank POLICIES. */
static uint64_t used_indices[WORDS];

void memrt__policy_finish_default(void)
{
    while (
        memrt__load_acquire(&memrt__default_state) != MEMRT__DEFAULT_FINAL &&
        !memrt__cas_relaxed(&memrt__default_state, MEMRT__DEFAULT_UNUSED, MEMRT__DEFAULT_FINAL)) {
        sched_yield();
    }
}

bool memrt__is_name(const char *name)
{
    return strnlen(name, MEMRT_NAME_MAX + 1) <= MEMRT_NAME_MAX;
}

uint32_t memrt__policy_free_index(void)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_POLICIES);
    MEMRT__ASSERT((used_indices[0] & 1) != 0); /* of the default policy */
    uint32_t word = 0;
    while (word < WORDS && used_indices[word] == UINT64_MAX) {
        word++;
    }
    return word == WORDS ? MEMRT__ACCOUNTS
                         : word * WORD_BITS + (uint32_t)__builtin_ctzll(~used_indices[word]);
}

void memrt__policy_put(memrt_policy_t *policy, uint32_t index)
{
    MEMRT__ASSERT(index < MEMRT__ACCOUNTS && index <= memrt__policy_table_end);
    policy->account.index = index;
    memrt__policies[index] = policy;
    used_indices[index / WORD_BITS] |= (uint64_t)1 << index % WORD_BITS;
    memrt__policy_table_end = (uint32_t)memrt__size_max(memrt__policy_table_end, index + 1);
}

void memrt__policy_remove(const memrt_policy_t *policy)
{
    uint32_t index = policy->account.index;
    MEMRT__ASSERT_HELD(MEMRT__RANK_POLICIES);
    MEMRT__ASSERT(memrt__policies[index] == policy);
    memrt__policies[index] = NULL;
    used_indices[index / WORD_BITS] &= ~((uint64_t)1 << index % WORD_BITS);
}

const memrt_policy_t *memrt__policy_find(const memrt_policy_t *address)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_POLICIES);
    for (uint32_t index = 0; index < memrt__policy_table_end; index++) {
        if (address != NULL && memrt__policies[index] == address) {
            return address;
        }
    }
    return NULL;
}

uint32_t memrt__policy_limit(void)
{
    memrt__lock(MEMRT__RANK_POLICIES);
    uint32_t end = memrt__policy_table_end;
    memrt__unlock(MEMRT__RANK_POLICIES);
    return end;
}

bool memrt__policy_is_used(const memrt_policy_t *policy)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_POLICIES);
    return memrt__policy_has_references(policy) || policy->subpolicies != 0 ||
           !memrt__stats_is_idle(&policy->account);
}

static bool has_close_guards(const memrt_policy_t *policy)
{
    return policy != NULL && !memrt__policy_is_subpolicy(policy) && policy->fast &&
           memrt__guard_pages_are_close(memrt__load_relaxed(&policy->limits.guard_sample));
}

void memrt__policy_follow_guards(void)
{
    bool close = false;
    MEMRT__ASSERT_HELD(MEMRT__RANK_POLICIES);
    for (uint32_t index = 0; index < memrt__policy_table_end && !close; index++) {
        close = has_close_guards(memrt__policies[index]);
    }
    memrt__slow_path_set(MEMRT__SLOW_CLOSE, close);
}

#if MEMRT_DEBUG

static bool is_in_table(const memrt_policy_t *policy)
{
    return policy->account.index < memrt__policy_table_end &&
           memrt__policies[policy->account.index] == policy;
}

/// Return the number of subpolicies in the list of a base policy, or UINT32_MAX if a link of the
/// list is wrong.
static uint32_t count_linked_subpolicies(const memrt_policy_t *base)
{
    uint32_t count = 0;
    memrt_policy_t *const *link = &base->first_subpolicy;
    while (*link != NULL && count < memrt__policy_table_end) { /* ends for a cycle, too */
        const memrt_policy_t *subpolicy = *link;
        if (!is_in_table(subpolicy) || subpolicy->base != base || subpolicy->link_of_base != link) {
            return UINT32_MAX;
        }
        link = &subpolicy->next_of_base;
        count++;
    }
    return count;
}

/// Return the number of subpolicies of a base policy in the table.
static uint32_t count_subpolicies(const memrt_policy_t *base)
{
    uint32_t count = 0;
    for (uint32_t index = 0; index < memrt__policy_table_end; index++) {
        const memrt_policy_t *policy = memrt__policies[index];
        count += policy != NULL && policy != base && policy->base == base;
    }
    return count;
}

/// Return whether the public index of a referenced base policy leads to the policy: to the base, or
/// after a fork to a subpolicy of the base.
static bool is_found_by_public_index(const memrt_policy_t *base)
{
    const memrt_policy_t *at = memrt__policies[base->index];
    return !memrt__policy_has_references(base) || (at != NULL && at->base == base);
}

/// Check a base policy: in no scope, directly inside the process, with all its subpolicies linked.
static bool is_base_valid(const memrt_policy_t *base)
{
    return MEMRT__HOLDS(base->scope == NULL) && MEMRT__HOLDS(base->level.up == &memrt__process) &&
           MEMRT__HOLDS(base->subpolicies == count_subpolicies(base)) &&
           MEMRT__HOLDS(base->subpolicies == count_linked_subpolicies(base)) &&
           MEMRT__HOLDS(base->index < memrt__policy_table_end) &&
           MEMRT__HOLDS(is_found_by_public_index(base));
}

/// Check a subpolicy: the base is in the table and has the same settings; the subpolicy is of a
/// scope or of a fork.
static bool is_subpolicy_valid(const memrt_policy_t *subpolicy)
{
    return MEMRT__HOLDS(is_in_table(subpolicy->base)) &&
           MEMRT__HOLDS(subpolicy->base->base == subpolicy->base) &&
           MEMRT__HOLDS(subpolicy->subpolicies == 0) &&
           MEMRT__HOLDS(subpolicy->alignment == subpolicy->base->alignment) &&
           MEMRT__HOLDS(subpolicy->allocator.alloc == subpolicy->base->allocator.alloc) &&
           MEMRT__HOLDS(subpolicy->allocator.ctx == subpolicy->base->allocator.ctx) &&
           MEMRT__HOLDS(subpolicy->scope != NULL || memrt__is_fork_account(subpolicy));
}

/// Check a policy in the table.
static bool is_policy_valid(const memrt_policy_t *policy)
{
    return MEMRT__HOLDS(policy->account.shared == &policy->shared) &&
           MEMRT__HOLDS(policy->account.policy == &policy->base->level) &&
           MEMRT__HOLDS(memrt__is_power_of_two(policy->alignment)) &&
           MEMRT__HOLDS(policy->alignment >= MEMRT_ALIGN_MIN ||
                        policy->alignment == MEMRT__ALIGN_OFFSET) &&
           MEMRT__HOLDS(policy->allocator.alloc != NULL && policy->allocator.free != NULL) &&
           /* the fast path knows one layout: the header directly before the data */
           MEMRT__HOLDS(!policy->fast || policy->alignment == MEMRT_HEADER_SIZE) &&
           MEMRT__HOLDS(!policy->tiny || policy->fast) &&
           MEMRT__HOLDS(!policy->bump || policy->alignment == MEMRT_HEADER_SIZE) &&
           MEMRT__HOLDS(memrt__is_name(policy->name)) &&
           (memrt__policy_is_subpolicy(policy) ? is_subpolicy_valid(policy)
                                               : is_base_valid(policy));
}

static bool is_index_used(uint32_t index)
{
    return (used_indices[index / WORD_BITS] >> index % WORD_BITS & 1) != 0;
}

/// Check the entered accounts: exactly the accounts of the policies in the table.
static bool are_accounts_valid(size_t policies)
{
    size_t count = 0;
    bool valid = true;
    memrt__lock(MEMRT__RANK_THREADS);
    for (const memrt__account_t *a = memrt__account_first(); valid && a != NULL; a = a->next) {
        const memrt_policy_t *policy = memrt__policies[a->index];
        valid = MEMRT__HOLDS(policy != NULL && &policy->account == a);
        count++;
    }
    memrt__unlock(MEMRT__RANK_THREADS);
    return valid && MEMRT__HOLDS(count == policies);
}

bool memrt__policy_table_is_valid(void)
{
    size_t count = 0;
    memrt__lock(MEMRT__RANK_POLICIES);
    bool valid = MEMRT__HOLDS(memrt__policy_table_end <= MEMRT__ACCOUNTS) &&
                 MEMRT__HOLDS(memrt__policies[0] != NULL) &&
                 MEMRT__HOLDS(memrt__policies[0]->base == &memrt__default_policy);
    for (uint32_t index = 0; index < MEMRT__ACCOUNTS && valid; index++) {
        const memrt_policy_t *policy = memrt__policies[index];
        valid = MEMRT__HOLDS(policy == NULL || index < memrt__policy_table_end) &&
                MEMRT__HOLDS(is_index_used(index) == (policy != NULL)) &&
                MEMRT__HOLDS(policy == NULL || policy->account.index == index) &&
                (policy == NULL || is_policy_valid(policy));
        count += policy != NULL;
    }
    valid = valid && are_accounts_valid(count);
    memrt__unlock(MEMRT__RANK_POLICIES);
    return valid;
}

#endif
