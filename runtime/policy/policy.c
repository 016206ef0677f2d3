#include "runtime/policy/policy.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/alloc/adaptors/arena.h"
#include "runtime/alloc/file_backed.h"
#include "runtime/alloc/guard/guard.h"
#include "runtime/alloc/guard/guard_pages.h"
#include "runtime/alloc/heap/heap.h"
#include "runtime/base/check.h"
#include "runtime/base/size.h"
#include "runtime/config/policy_options.h"
#include "runtime/os/lock.h"
#include "runtime/policy/policy_memory.h"
#include "runtime/policy/policy_sweep.h"
#include "runtime/policy/scope_tree.h"

/// Return the alignment of the blocks for the alignment that a caller or an option names. Headers
/// of file-backed blocks end where the file begins, so that an option has no effect there.
static size_t choose_alignment(size_t named, const memrt_allocator_t *allocator)
{
    return named == MEMRT__ALIGN_OFFSET && !memrt__is_file_backed(allocator)
               ? named
               : memrt__size_max(named, MEMRT_ALIGN_MIN);
}

/// Return whether blocks of a policy lie in an arena with their headers directly before the data.
static bool is_bump(const memrt_policy_t *policy)
{
    return memrt__is_arena(&policy->allocator) && policy->alignment == MEMRT_HEADER_SIZE;
}

/// Fill in a policy with an index. `alignment` 0: the caller gave no alignment.
static void fill_policy(memrt_policy_t *policy, const char *name, size_t alignment)
{
    bool named = alignment != 0 || memrt__options.alignment != MEMRT_ALIGN_MIN;
    alignment = alignment != 0 ? alignment : memrt__options.alignment;
    MEMRT__ASSERT(memrt__is_power_of_two(alignment) && alignment <= MEMRT_ALIGN_MAX);
    MEMRT__ASSERT(memrt__is_name(name) && policy->allocator.alloc != NULL);
    policy->index = policy->account.index;
    policy->account.shared = &policy->shared;
    policy->shared = MEMRT__SHARED_SHARD;
    policy->account.policy = &policy->level;
    policy->base = policy;
    policy->level.up = &memrt__process;
    policy->alignment = choose_alignment(alignment, &policy->allocator);
    policy->refs = 1;
    policy->fast = memrt__is_heap(&policy->allocator) && policy->alignment == MEMRT_HEADER_SIZE &&
                   !memrt__guard_pages_are_close(policy->limits.guard_sample);
    policy->tiny = policy->fast && !named;
    policy->bump = is_bump(policy);
    memcpy(policy->name, name, strlen(name) + 1);
    memrt__account_enter(&policy->account);
}

static const memrt__limits_t no_limits = MEMRT__INHERIT_ALL;

static bool has_limits(const memrt__limits_t *limits)
{
    return memcmp(limits, &no_limits, sizeof(no_limits)) != 0;
}

/// Return whether a policy needs a cache of its own. All members before `guard_sample` are limits
/// of the cache.
static bool has_cache_limits(const memrt__limits_t *limits)
{
    return memcmp(limits, &no_limits, offsetof(memrt__limits_t, guard_sample)) != 0;
}

/// Copy an allocator. In checking mode, wrap the allocator in a guard if it accepts a guard.
static memrt_status_t copy_or_guard_allocator(const memrt_allocator_t *from, memrt_allocator_t *to)
{
    memrt_status_t status = memrt__allocator_copy(from, to);
    return status == MEMRT_OK && memrt__options.check && !memrt__is_file_backed(to)
               ? memrt__guard_new(from, to)
               : status;
}

/// Choose the allocator of a new policy. `from` NULL: the default allocator with `limits`.
static memrt_status_t choose_allocator(const memrt_allocator_t *from, const memrt__limits_t *limits,
                                       memrt_allocator_t *to)
{
    if (from != NULL) {
        return copy_or_guard_allocator(from, to);
    }
    if (!has_cache_limits(limits)) {
        return copy_or_guard_allocator(memrt__default_allocator(), to);
    }
    memrt_allocator_t limited;
    memrt_status_t status = memrt__limited_allocator(limits, &limited);
    if (status == MEMRT_OK) {
        status = copy_or_guard_allocator(&limited, to);
        if (status != MEMRT_OK) {
            memrt__allocator_destroy(&limited);
        }
    }
    return status;
}

/// Destroy the allocator of a policy that could not be made. An allocator from the caller stays the
/// caller's.
static void drop_allocator(const memrt_allocator_t *from, const memrt_allocator_t *chosen)
{
    if (from == NULL) {
        memrt__allocator_destroy(chosen);
    } else if (chosen->ctx != from->ctx) {
        free(chosen->ctx); /* the guard alone, without its upstream */
    }
}

void memrt__policy_start(void)
{
    memrt__heap_start();
    if (choose_allocator(NULL, &no_limits, &memrt__default_policy.allocator) != MEMRT_OK) {
        memrt__abort("no memory for the guard of MEMRT_CHECK");
    }
    memrt__default_policy.limits = no_limits;
    memrt__policy_put(&memrt__default_policy, 0);
    fill_policy(&memrt__default_policy, "default", 0);
}

/// Enter a policy at the lowest free index. Failure: returns false if all indices are in use.
static bool enter_policy(memrt_policy_t *policy, const char *name, size_t alignment)
{
    memrt__lock(MEMRT__RANK_POLICIES);
    uint32_t index = memrt__policy_free_index();
    if (index < MEMRT__ACCOUNTS) {
        memrt__policy_put(policy, index);
        fill_policy(policy, name, alignment);
    }
    memrt__unlock(MEMRT__RANK_POLICIES);
    return index < MEMRT__ACCOUNTS;
}

/// Enter a policy, after a complete sweep if all indices are in use. Failure: returns MEMRT_ELIMIT.
static memrt_status_t sweep_and_enter_policy(memrt_policy_t *policy, const char *name,
                                             size_t alignment)
{
    if (enter_policy(policy, name, alignment)) {
        return MEMRT_OK;
    }
    memrt__policy_sweep();
    return enter_policy(policy, name, alignment) ? MEMRT_OK : MEMRT_ELIMIT;
}

static memrt_status_t create_policy(const memrt_policy_options_t *options,
                                    const memrt__limits_t *limits, memrt_policy_t **out)
{
    const char *name = options->name == NULL ? "policy" : options->name;
    memrt_policy_t *policy = memrt__policy_memory_alloc();
    if (policy == NULL) {
        return MEMRT_ENOMEM;
    }
    policy->limits = *limits;
    memrt_status_t status = choose_allocator(options->allocator, limits, &policy->allocator);
    if (status != MEMRT_OK) {
        goto free_policy;
    }
    status = sweep_and_enter_policy(policy, name, options->alignment);
    if (status != MEMRT_OK) {
        goto drop_allocator;
    }
    *out = policy;
    return MEMRT_OK;

drop_allocator:
    drop_allocator(options->allocator, &policy->allocator);
free_policy:
    free(policy);
    return status;
}

bool memrt__policy_start_guards(const memrt__limits_t *limits)
{
    return limits->guard_sample == 0 || limits->guard_sample == MEMRT__INHERIT ||
           memrt__options.check || memrt__guard_pages_start();
}

memrt_status_t memrt__policy_new(const memrt_policy_options_t *options, memrt_policy_t **out)
{
    memrt_policy_options_t all = {0};
    if (options != NULL) {
        if (options->struct_size < sizeof(options->struct_size)) {
            return MEMRT_EINVAL;
        }
        memcpy(&all, options, memrt__size_min(options->struct_size, sizeof(all)));
    }
    bool aligned = all.alignment == 0 ||
                   (memrt__is_power_of_two(all.alignment) && all.alignment <= MEMRT_ALIGN_MAX);
    memrt__limits_t limits;
    bool offset = all.alignment == MEMRT__ALIGN_OFFSET && all.allocator != NULL &&
                  memrt__is_file_backed(all.allocator);
    if (!aligned || offset || (all.name != NULL && !memrt__is_name(all.name)) ||
        !memrt__limits_read(all.hugepages, all.cache_limit, all.decay, all.guard_sample, &limits) ||
        (all.allocator != NULL && has_limits(&limits))) {
        return MEMRT_EINVAL;
    }
    if (!memrt__policy_start_guards(&limits)) {
        return MEMRT_ENOMEM;
    }
    memrt__policy_sweep_some();
    return create_policy(&all, &limits, out);
}

/// Allocator that memrt__policy_default_set_allocator() replaced. Other threads may still read the
/// cached bytes of its guard.
static memrt_allocator_t replaced;

static void put_allocator(memrt_policy_t *policy, const memrt_allocator_t *allocator)
{
    policy->allocator = *allocator;
    policy->alignment = choose_alignment(policy->alignment, allocator);
    policy->fast &= memrt__is_heap(allocator);
    policy->tiny &= policy->fast;
    policy->bump = is_bump(policy);
}

/// Replace the allocator of the default policy and its subpolicies. No blocks exist.
static memrt_status_t replace_default_allocator(const memrt_allocator_t *allocator)
{
    memrt_policy_t *policy = memrt__policy_default();
    memrt__lock(MEMRT__RANK_POLICIES);
    bool unused =
        memrt__cas_relaxed(&memrt__default_state, MEMRT__DEFAULT_UNUSED, MEMRT__DEFAULT_CHANGING);
    if (unused) {
        replaced = policy->allocator;
        put_allocator(policy, allocator);
        for (memrt_policy_t *part = policy->first_subpolicy; part != NULL;
             part = part->next_of_base) {
            put_allocator(part, allocator);
        }
        memrt__store_release(&memrt__default_state, MEMRT__DEFAULT_FINAL);
    }
    memrt__unlock(MEMRT__RANK_POLICIES);
    return unused ? MEMRT_OK : MEMRT_EBUSY;
}

memrt_status_t memrt__policy_default_set_allocator(const memrt_allocator_t *allocator)
{
    memrt_allocator_t chosen;
    if (memrt__load_relaxed(&memrt__default_state) == MEMRT__DEFAULT_FINAL) {
        return MEMRT_EBUSY;
    }
    memrt_status_t status = copy_or_guard_allocator(allocator, &chosen);
    if (status == MEMRT_OK) {
        status = replace_default_allocator(&chosen);
        if (status != MEMRT_OK) {
            drop_allocator(allocator, &chosen);
        }
    }
    return status;
}

void memrt__policy_acquire(memrt_policy_t *policy)
{
    memrt__fetch_add_relaxed(&policy->refs, 1);
}

/// Release the references that a subpolicy holds.
static void release_base_and_scope(memrt_policy_t *base, memrt_scope_t *scope)
{
    memrt__policy_release(base);
    memrt__scope_release(scope);
}

/// Release a reference. Another thread may destroy the policy right after the decrement, so all
/// fields are read before.
void memrt__policy_release(memrt_policy_t *policy)
{
    memrt_policy_t *base = policy->base;
    memrt_scope_t *scope = policy->scope;
    uint32_t index = policy->account.index;
    MEMRT__ASSERT(base->base == base && (scope == NULL || base != policy));
    if (policy == &memrt__default_policy) {
        return;
    }
    size_t count = memrt__fetch_sub1_release(&policy->refs);
    if (count == 0) {
        memrt__abort("policy_release of %p: the count of references must be at least 1, got 0: the "
                     "policy was released more often than acquired" MEMRT__CHECK_HINT,
                     (void *)policy);
    }
    if (count != 1) {
        return;
    }
    if (scope != NULL) {
        release_base_and_scope(base, scope);
    }
    memrt__policy_sweep_at(index);
}

memrt_policy_t *memrt__policy_at(uint32_t index)
{
    memrt_policy_t *policy = NULL;
    memrt__lock(MEMRT__RANK_POLICIES);
    if (index < memrt__policy_table_end && memrt__policies[index] != NULL &&
        memrt__policies[index]->base->index == index) {
        policy = memrt__policies[index]->base;
        memrt__policy_acquire(policy);
    }
    memrt__unlock(MEMRT__RANK_POLICIES);
    return policy;
}

bool memrt__policy_is_held(const memrt_policy_t *policy)
{
    memrt__lock(MEMRT__RANK_POLICIES);
    const memrt_policy_t *found = memrt__policy_find(policy);
    bool held = found != NULL && memrt__policy_has_references(found);
    memrt__unlock(MEMRT__RANK_POLICIES);
    return held;
}

bool memrt__policy_is_known(const memrt_policy_t *policy)
{
    memrt__lock(MEMRT__RANK_POLICIES);
    const memrt_policy_t *found = memrt__policy_find(policy);
    bool known = found != NULL && memrt__policy_is_used(found);
    memrt__unlock(MEMRT__RANK_POLICIES);
    return known;
}
