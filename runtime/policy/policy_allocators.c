#include "runtime/policy/policy_allocators.h"

#include <stdio.h>

#include "runtime/alloc/adaptors/arena.h"
#include "runtime/alloc/guard/guard.h"
#include "runtime/alloc/heap/heap.h"
#include "runtime/alloc/placed/placed.h"
#include "runtime/config/policy_options.h"
#include "runtime/os/lock.h"
#include "runtime/policy/policy.h"
#include "runtime/policy/policy_sweep.h"
#include "runtime/stats/retire.h"

/// Visitor, called with a reference to the policy and a copy of its allocator, without a lock.
/// Returns true to end the visit.
typedef bool (*visit_fn)(const memrt_policy_t *policy, const memrt_allocator_t *allocator,
                         void *context);

/// Copy the allocator of a policy, because another thread may replace the default policy's.
static memrt_allocator_t copy_allocator(const memrt_policy_t *policy)
{
    memrt__lock(MEMRT__RANK_POLICIES);
    memrt_allocator_t allocator = policy->allocator;
    memrt__unlock(MEMRT__RANK_POLICIES);
    return allocator;
}

static bool visit_policies(visit_fn visit, void *context)
{
    bool ended = false;
    uint32_t indices = memrt__policy_limit();
    for (uint32_t index = 0; index < indices && !ended; index++) {
        memrt_policy_t *policy = memrt__policy_at(index);
        if (policy != NULL) {
            memrt_allocator_t allocator = copy_allocator(policy);
            ended = visit(policy, &allocator, context);
            memrt__policy_release(policy);
        }
    }
    return ended;
}

static bool verify_freed_blocks(const memrt_policy_t *policy, const memrt_allocator_t *allocator,
                                void *context)
{
    (void)policy;
    (void)context;
    if (memrt__is_guard(allocator)) {
        memrt__guard_verify_dead(allocator);
    }
    return false;
}

void memrt__policy_verify_dead(void)
{
    visit_policies(verify_freed_blocks, NULL);
}

typedef struct search {
    uintptr_t address;
    char *text;
    size_t length;
} search_t;

static bool write_freed_block_stacks(const memrt_policy_t *policy,
                                     const memrt_allocator_t *allocator, void *context)
{
    const search_t *search = context;
    (void)policy;
    return memrt__is_guard(allocator) &&
           memrt__guard_explain_dead(allocator, search->address, search->text, search->length);
}

bool memrt__policy_explain_dead(uintptr_t address, char *text, size_t length)
{
    search_t search = {address, text, length};
    text[0] = '\0';
    return visit_policies(write_freed_block_stacks, &search);
}

static bool empty_guard(const memrt_policy_t *policy, const memrt_allocator_t *allocator,
                        void *context)
{
    (void)policy;
    (void)context;
    if (memrt__is_guard(allocator)) {
        memrt__guard_empty(allocator);
    }
    return false;
}

typedef size_t (*allocator_fn)(const memrt_allocator_t *allocator);

static const memrt_allocator_t *unwrap_guard(const memrt_allocator_t *allocator)
{
    return memrt__is_guard(allocator) ? memrt__guard_upstream(allocator) : allocator;
}

static bool is_same_allocator(const memrt_allocator_t *a, const memrt_allocator_t *b)
{
    a = unwrap_guard(a);
    b = unwrap_guard(b);
    return a->ctx == b->ctx && a->alloc == b->alloc;
}

/// Return true if no policy at a lower index has the same allocator.
static bool is_first_with_allocator(const memrt_policy_t *policy,
                                    const memrt_allocator_t *allocator)
{
    bool first = true;
    MEMRT__ASSERT(!memrt__policy_is_subpolicy(policy));
    memrt__lock(MEMRT__RANK_POLICIES);
    for (uint32_t index = 0; index < policy->account.index && first; index++) {
        first = memrt__policies[index] == NULL ||
                memrt__policy_is_subpolicy(memrt__policies[index]) ||
                !is_same_allocator(&memrt__policies[index]->allocator, allocator);
    }
    memrt__unlock(MEMRT__RANK_POLICIES);
    return first;
}

typedef struct sum {
    allocator_fn measure;
    size_t bytes;
} sum_t;

static bool add_allocator_bytes(const memrt_policy_t *policy, const memrt_allocator_t *allocator,
                                void *context)
{
    sum_t *sum = context;
    if (is_first_with_allocator(policy, allocator)) {
        sum->bytes += sum->measure(allocator);
    }
    return false;
}

/// Sum `measure` over all allocators, each once: policies may share an allocator.
static size_t sum_over_allocators(allocator_fn measure)
{
    sum_t sum = {.measure = measure};
    visit_policies(add_allocator_bytes, &sum);
    return sum.bytes;
}

/// Return cached bytes. Memory that the heap caches for all policies counts for the process, not
/// for a policy.
size_t memrt__policy_cached(const memrt_policy_t *policy)
{
    if (policy == NULL) {
        return sum_over_allocators(memrt__allocator_cached);
    }
    memrt_allocator_t allocator = copy_allocator(policy);
    return memrt__is_shared_heap(&allocator) ? 0 : memrt__allocator_cached(&allocator);
}

bool memrt__policy_is_empty(const memrt_policy_t *policy)
{
    MEMRT__ASSERT(!memrt__policy_is_subpolicy(policy));
    memrt__lock(MEMRT__RANK_POLICIES);
    bool empty = memrt__stats_is_idle(&policy->account);
    const memrt_policy_t *next = policy->first_subpolicy;
    for (; next != NULL && empty; next = next->next_of_base) {
        empty = memrt__stats_is_idle(&next->account);
    }
    memrt__unlock(MEMRT__RANK_POLICIES);
    return empty;
}

size_t memrt__policy_release_own(const memrt_policy_t *policy)
{
    memrt_allocator_t allocator = copy_allocator(policy);
    if (memrt__is_guard(&allocator)) {
        memrt__guard_empty(&allocator);
    }
    return memrt__is_shared_heap(unwrap_guard(&allocator))
               ? 0
               : memrt__allocator_release_unused(&allocator);
}

memrt_status_t memrt__policy_placement(const memrt_policy_t *policy, memrt_placement_asked_t *out)
{
    if (out->struct_size < sizeof(*out)) {
        return MEMRT_EINVAL;
    }
    memrt_allocator_t copy =
        copy_allocator(policy == NULL ? memrt__policy_default() : policy->base);
    const memrt_allocator_t *allocator = unwrap_guard(&copy);
    if (memrt__is_arena(allocator)) {
        allocator = memrt__arena_upstream(allocator);
    }
    return memrt__placed_asked(allocator, out) ? MEMRT_OK : MEMRT_ENOENT;
}

size_t memrt__policy_release_unused(void)
{
    visit_policies(empty_guard, NULL); /* into upstreams, which may cache the blocks */
    size_t bytes = sum_over_allocators(memrt__allocator_release_unused);
    memrt__policy_sweep();
    return bytes;
}

/// Write to `why` the reason that an option of a policy is fixed.
static memrt_status_t refuse_option(const memrt_policy_t *policy, const char *name, char *why,
                                    size_t length)
{
    if (memrt__limits_is_guard(name)) {
        snprintf(why, length,
                 "policy '%s' must have memrt's allocator to change %.40s: create the policy "
                 "with no allocator",
                 policy->name, name);
    } else if (memrt__has_limits(unwrap_guard(&policy->allocator))) {
        snprintf(why, length,
                 "%.40s of a live policy must stay in a process without caches "
                 "(MEMRT_CACHE=0 or MEMRT_CHECK=1): create another policy",
                 name);
    } else {
        snprintf(why, length,
                 "policy '%s' must have a cache of its own to change %.40s: create the "
                 "policy with cache_limit, decay or hugepages, and with no allocator",
                 policy->name, name);
    }
    return MEMRT_ENOTSUP;
}

/// Return whether guard pages may lie around the blocks of a policy.
static bool may_guard(const memrt_policy_t *policy)
{
    return unwrap_guard(&policy->allocator)->alloc == memrt__default_allocator()->alloc;
}

static void store_guards(memrt_policy_t *policy, const memrt__limits_t *limits)
{
    if (policy == memrt__policy_default()) {
        memrt__policy_finish_default(); /* another allocator may have no guard pages */
    }
    memrt__limits_store(&policy->limits, limits);
    memrt__policy_follow_guards();
}

static bool change_cache(memrt_policy_t *policy, const memrt__limits_t *limits)
{
    const memrt_allocator_t *allocator = unwrap_guard(&policy->allocator);
    if (!memrt__has_limits(allocator) ||
        !memrt__heap_change_limits(allocator, &policy->limits, limits)) {
        return false;
    }
    memrt__limits_store(&policy->limits, limits);
    return true;
}

/// Change one option of a base policy. Under the lock of rank POLICIES.
static memrt_status_t change_option(memrt_policy_t *policy, const char *name, const char *value,
                                    char *why, size_t length)
{
    memrt__limits_t limits = policy->limits;
    memrt_status_t status = memrt__limits_change(&limits, name, value, why, length);
    if (status != MEMRT_OK) {
        return status;
    }
    if (!memrt__limits_is_guard(name)) {
        return change_cache(policy, &limits) ? MEMRT_OK : refuse_option(policy, name, why, length);
    }
    if (!may_guard(policy)) {
        return refuse_option(policy, name, why, length);
    }
    if (!memrt__policy_start_guards(&limits)) {
        snprintf(why, length, "no memory for guard pages");
        return MEMRT_ENOMEM;
    }
    store_guards(policy, &limits);
    return MEMRT_OK;
}

memrt_status_t memrt__policy_set_option(memrt_policy_t *policy, const char *name, const char *value,
                                        char *why, size_t length)
{
    memrt__lock(MEMRT__RANK_POLICIES);
    memrt_status_t status = change_option(policy->base, name, value, why, length);
    memrt__unlock(MEMRT__RANK_POLICIES);
    if (status == MEMRT_OK) {
        memrt__heap_apply_limits();
    }
    return status;
}

#if MEMRT_DEBUG

bool memrt__policy_allocators_is_valid(void)
{
    bool valid = true;
    memrt__lock(MEMRT__RANK_POLICIES);
    for (uint32_t index = 0; valid && index < memrt__policy_table_end; index++) {
        const memrt_policy_t *policy = memrt__policies[index];
        bool guarded = policy != NULL && memrt__is_guard(&policy->allocator);
        bool arena = policy != NULL && memrt__is_arena(&policy->allocator);
        valid = (!guarded || memrt__guard_is_valid(&policy->allocator)) &&
                (!arena || memrt__arena_is_valid(&policy->allocator));
    }
    memrt__unlock(MEMRT__RANK_POLICIES);
    return valid;
}

#endif
