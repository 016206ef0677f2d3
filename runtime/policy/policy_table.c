#include "runtime/policy/policy_table.h"

#include <string.h>

#include "runtime/base/size.h"
#include "runtime/os/lock.h"
#include "runtime/stats/retire.h"

memrt_policy_t *memrt__policies[MEMRT__ACCOUNTS];
memrt_policy_t memrt__default_policy;
uint32_t memrt__policy_table_end;

/* Set of the indices in use, as bits. Under the lock of rank POLICIES. */
#define WORD_BITS 64u
#define WORDS ((MEMRT__ACCOUNTS + WORD_BITS - 1) / WORD_BITS)
static uint64_t used[WORDS];

bool memrt__is_name(const char *name)
{
    return strnlen(name, MEMRT_NAME_MAX + 1) <= MEMRT_NAME_MAX;
}

uint32_t memrt__policy_free_index(void)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_POLICIES);
    MEMRT__ASSERT((used[0] & 1) != 0);
    uint32_t word = 0;
    while (word < WORDS && used[word] == UINT64_MAX) {
        word++;
    }
    return word == WORDS ? MEMRT__ACCOUNTS
                         : word * WORD_BITS + (uint32_t)__builtin_ctzll(~used[word]);
}

void memrt__policy_put(memrt_policy_t *policy, uint32_t index)
{
    MEMRT__ASSERT(index < MEMRT__ACCOUNTS && index <= memrt__policy_table_end);
    policy->account.index = index;
    memrt__policies[index] = policy;
    used[index / WORD_BITS] |= (uint64_t)1 << index % WORD_BITS;
    memrt__policy_table_end = (uint32_t)memrt__size_max(memrt__policy_table_end, index + 1);
}

void memrt__policy_remove(const memrt_policy_t *policy)
{
    uint32_t index = policy->account.index;
    MEMRT__ASSERT_HELD(MEMRT__RANK_POLICIES);
    MEMRT__ASSERT(memrt__policies[index] == policy);
    memrt__policies[index] = NULL;
    used[index / WORD_BITS] &= ~((uint64_t)1 << index % WORD_BITS);
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
    uint32_t now = memrt__policy_table_end;
    memrt__unlock(MEMRT__RANK_POLICIES);
    return now;
}

bool memrt__policy_is_used(const memrt_policy_t *policy)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_POLICIES);
    return memrt__policy_has_references(policy) || policy->subpolicies != 0 ||
           !memrt__stats_is_idle(&policy->account);
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
    while (*link != NULL && count < memrt__policy_table_end) {
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

/// Return whether callers find a referenced base policy by its fixed index. After a fork, the entry
/// may be a fork subpolicy.
static bool is_known_by_index(const memrt_policy_t *base)
{
    const memrt_policy_t *at = memrt__policies[base->index];
    return !memrt__policy_has_references(base) || (at != NULL && at->base == base);
}

static bool is_base_valid(const memrt_policy_t *base)
{
    return MEMRT__HOLDS(base->scope == NULL) && MEMRT__HOLDS(base->level.up == &memrt__process) &&
           MEMRT__HOLDS(base->subpolicies == count_subpolicies(base)) &&
           MEMRT__HOLDS(base->subpolicies == count_linked_subpolicies(base)) &&
           MEMRT__HOLDS(base->index < memrt__policy_table_end) &&
           MEMRT__HOLDS(is_known_by_index(base));
}

/// A base outlives its subpolicies, and has the same settings.
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
           MEMRT__HOLDS(memrt__is_name(policy->name)) &&
           (memrt__policy_is_subpolicy(policy) ? is_subpolicy_valid(policy)
                                               : is_base_valid(policy));
}

static bool is_index_used(uint32_t index)
{
    return (used[index / WORD_BITS] >> index % WORD_BITS & 1) != 0;
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
