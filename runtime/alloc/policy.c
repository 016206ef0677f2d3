#include "runtime/alloc/policy.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/alloc/guard.h"
#include "runtime/alloc/pool.h"
#include "runtime/alloc/scope.h"
#include "runtime/base/check.h"
#include "runtime/base/failure.h"
#include "runtime/base/lock.h"
#include "runtime/base/size.h"
#include "runtime/stats/stats.h"

memrt_policy_t *memrt__policies[MEMRT__ACCOUNTS];

memrt_policy_t memrt__default_policy;
static uint32_t limit; /* under the lock of rank POLICIES: indices from here on were never used */

bool memrt__is_name(const char *name)
{
    return strnlen(name, MEMRT_NAME_MAX + 1) <= MEMRT_NAME_MAX;
}

/// `alignment` 0: nobody named one.
static void fill(memrt_policy_t *policy, uint32_t index, const char *name, size_t alignment)
{
    bool named = alignment != 0 || memrt__options.alignment != MEMRT_ALIGN_MIN;
    alignment = alignment != 0 ? alignment : memrt__options.alignment;
    policy->account.index = index;
    policy->account.shared = &policy->shared;
    policy->account.policy = &policy->level;
    policy->base = policy;
    policy->level.up = &memrt__process;
    policy->alignment = memrt__size_max(alignment, MEMRT_ALIGN_MIN);
    policy->refs = 1;
    policy->quick = memrt__is_pool(&policy->allocator) && policy->alignment == MEMRT_HEADER_SIZE;
    policy->tiny = policy->quick && !named;
    memcpy(policy->name, name, strlen(name) + 1);
    memrt__account_enter(&policy->account);
}

static const memrt__limits_t no_limits = MEMRT__INHERIT_ALL;

static bool has_limits(const memrt__limits_t *limits)
{
    return memcmp(limits, &no_limits, sizeof(no_limits)) != 0;
}

/// Under checking, fenced.
static memrt_status_t fence(const memrt_allocator_t *from, memrt_allocator_t *to)
{
    return memrt__options.check ? memrt__guard_new(from, to) : memrt__allocator_copy(from, to);
}

/// The allocator of a new policy. NULL: the default one, with the limits.
static memrt_status_t choose_allocator(const memrt_allocator_t *from, const memrt__limits_t *limits,
                                       memrt_allocator_t *to)
{
    if (from != NULL) {
        return fence(from, to);
    }
    if (!has_limits(limits)) {
        return fence(memrt__default_allocator(), to);
    }
    memrt_allocator_t limited;
    memrt_status_t status = memrt__limited_allocator(limits, &limited);
    if (status == MEMRT_OK) {
        status = fence(&limited, to);
        if (status != MEMRT_OK) {
            memrt__allocator_destroy(&limited);
        }
    }
    return status;
}

/// The end of an allocator that no policy came to be for. What the caller handed in stays the
/// caller's.
static void drop_allocator(const memrt_allocator_t *from, const memrt_allocator_t *chosen)
{
    if (from == NULL) {
        memrt__allocator_destroy(chosen);
    } else if (memrt__options.check) {
        free(chosen->ctx); /* the guard's own part */
    }
}

void memrt__policy_start(void)
{
    memrt__pool_start();
    if (choose_allocator(NULL, &no_limits, &memrt__default_policy.allocator) != MEMRT_OK) {
        memrt__abort("no memory for the guard of MEMRT_CHECK");
    }
    memrt__default_policy.limits = no_limits;
    fill(&memrt__default_policy, 0, "default", 0);
    memrt__policies[0] = &memrt__default_policy;
    limit = 1;
}

static bool is_held(const memrt_policy_t *policy)
{
    return memrt__load_acquire(&policy->refs) != 0;
}

/// Whether somebody may still allocate from it.
static bool is_wanted(const memrt_policy_t *policy)
{
    return is_held(policy) ||
           (policy->scope != NULL && is_held(policy->base) && memrt__scope_is_held(policy->scope));
}

size_t memrt__parts_gone; /* written under the lock of rank POLICIES */

static void unlink_part(memrt_policy_t *part)
{
    memrt_policy_t **link = &part->scope->parts;
    while (*link != part) {
        link = &(*link)->next_part;
    }
    *link = part->next_part;
    part->base->parts--;
    memrt__own_add(&memrt__parts_gone, 1);
}

/// Under the lock of rank POLICIES.
static void take_out(memrt_policy_t *policy, memrt_policy_t **dead)
{
    memrt__stats_retire(&policy->account);
    memrt__policies[policy->account.index] = NULL;
    if (policy->scope != NULL) {
        unlink_part(policy);
    }
    policy->next_dead = *dead;
    *dead = policy;
}

/// Take the dead out of the table, and have those that nobody holds keep nothing: parts, or others.
/// Under the lock of rank POLICIES.
static void collect_dead(bool parts, memrt_policy_t **dead)
{
    for (uint32_t index = 1; index < limit; index++) {
        memrt_policy_t *policy = memrt__policies[index];
        if (policy == NULL || (policy->scope != NULL) != parts || is_wanted(policy)) {
            continue;
        }
        if (!parts) {
            memrt__pool_close(&policy->allocator);
        }
        /* Once is enough: blocks can only become fewer. */
        if (policy->parts == 0 && memrt__stats_is_idle(&policy->account)) {
            take_out(policy, dead);
        }
    }
}

void memrt__policy_sweep(void)
{
    memrt_policy_t *dead = NULL;
    memrt__lock(MEMRT__RANK_POLICIES);
    collect_dead(true, &dead);
    collect_dead(false, &dead);
    memrt__unlock(MEMRT__RANK_POLICIES);
    while (dead != NULL) {
        memrt_policy_t *policy = dead;
        dead = policy->next_dead;
        if (policy->scope == NULL) {
            memrt__allocator_destroy(&policy->allocator);
        }
        free(policy);
    }
}

/// The lowest free index; MEMRT__ACCOUNTS: there is none.
static uint32_t free_index(void)
{
    uint32_t index = 1;
    while (index < limit && memrt__policies[index] != NULL) {
        index++;
    }
    return index;
}

static void enter_at(memrt_policy_t *policy, uint32_t index)
{
    memrt__policies[index] = policy;
    limit = (uint32_t)memrt__size_max(limit, index + 1);
}

/// Put a policy at the lowest free index.
static memrt_status_t enter(memrt_policy_t *policy, const char *name, size_t alignment)
{
    memrt__lock(MEMRT__RANK_POLICIES);
    uint32_t index = free_index();
    if (index < MEMRT__ACCOUNTS) {
        fill(policy, index, name, alignment);
        enter_at(policy, index);
    }
    memrt__unlock(MEMRT__RANK_POLICIES);
    return index < MEMRT__ACCOUNTS ? MEMRT_OK : MEMRT_ELIMIT;
}

static memrt_policy_t *new_policy(void)
{
    memrt_policy_t *policy =
        memrt__failure_due() ? NULL : aligned_alloc(MEMRT__CACHE_LINE, sizeof(*policy));
    if (policy != NULL) {
        memset(policy, 0, sizeof(*policy));
    }
    return policy;
}

static void fill_part(memrt_policy_t *part, memrt_policy_t *base, memrt_scope_t *scope)
{
    *part = (memrt_policy_t){
        .account = {.shared = &part->shared, .policy = &base->level, .scope = &scope->level},
        .shared.sizes = part->shared_sizes,
        .allocator = base->allocator,
        .alignment = base->alignment,
        .tiny = base->tiny,
        .quick = base->quick,
        .limits = base->limits,
        .base = base,
        .scope = scope,
    };
    memcpy(part->name, base->name, sizeof(part->name));
}

static memrt_policy_t *find_part(const memrt_policy_t *base, const memrt_scope_t *scope)
{
    memrt_policy_t *part = scope->parts;
    while (part != NULL && part->base != base) {
        part = part->next_part;
    }
    return part;
}

/// Put `fresh` in its place, unless another thread was first. NULL: no index is free.
static memrt_policy_t *place_part(memrt_policy_t *fresh)
{
    memrt__lock(MEMRT__RANK_POLICIES);
    memrt_policy_t *part = find_part(fresh->base, fresh->scope);
    uint32_t index = free_index();
    if (part == NULL && index < MEMRT__ACCOUNTS) {
        part = fresh;
        part->account.index = index;
        part->next_part = part->scope->parts;
        part->scope->parts = part;
        part->base->parts++;
        memrt__account_enter(&part->account);
        enter_at(part, index);
    }
    memrt__unlock(MEMRT__RANK_POLICIES);
    return part;
}

memrt_policy_t *memrt__policy_part(memrt_policy_t *base, memrt_scope_t *scope)
{
    memrt__lock(MEMRT__RANK_POLICIES);
    memrt_policy_t *part = find_part(base, scope);
    memrt__unlock(MEMRT__RANK_POLICIES);
    memrt_policy_t *fresh = part == NULL ? new_policy() : NULL;
    if (fresh == NULL) {
        return part;
    }
    fill_part(fresh, base, scope);
    part = place_part(fresh);
    if (part == NULL) {
        memrt__policy_sweep();
        part = place_part(fresh);
    }
    if (part != fresh) {
        free(fresh);
    }
    return part;
}

static memrt_status_t make(const memrt_policy_options_t *options, const memrt__limits_t *limits,
                           memrt_policy_t **out)
{
    const char *name = options->name == NULL ? "policy" : options->name;
    memrt_policy_t *policy = new_policy();
    if (policy == NULL) {
        return MEMRT_ENOMEM;
    }
    policy->limits = *limits;
    memrt_status_t status = choose_allocator(options->allocator, limits, &policy->allocator);
    if (status != MEMRT_OK) {
        goto free_policy;
    }
    status = enter(policy, name, options->alignment);
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
    if (!aligned || (all.name != NULL && !memrt__is_name(all.name)) ||
        !memrt__limits_read(all.hugepages, all.cache_limit, all.decay, &limits) ||
        (all.allocator != NULL && has_limits(&limits))) {
        return MEMRT_EINVAL;
    }
    memrt__policy_sweep();
    return make(&all, &limits, out);
}

void memrt__policy_acquire(memrt_policy_t *policy)
{
    memrt__fetch_add_relaxed(&policy->refs, 1);
}

/// What a part held.
static void let_go(memrt_policy_t *base, memrt_scope_t *scope)
{
    memrt__policy_release(base);
    memrt__scope_release(scope);
}

/// Without its reference the policy may be destroyed at any moment: it is asked before.
void memrt__policy_release(memrt_policy_t *policy)
{
    memrt_policy_t *base = policy->base;
    memrt_scope_t *scope = policy->scope;
    if (policy == &memrt__default_policy || memrt__fetch_sub1_release(&policy->refs) != 1) {
        return;
    }
    if (scope != NULL) {
        let_go(base, scope);
    }
    memrt__policy_sweep();
}

memrt_policy_t *memrt__policy_at(uint32_t index)
{
    memrt_policy_t *policy = NULL;
    memrt__lock(MEMRT__RANK_POLICIES);
    if (index < limit && memrt__policies[index] != NULL && memrt__policies[index]->scope == NULL) {
        policy = memrt__policies[index];
        memrt__policy_acquire(policy);
    }
    memrt__unlock(MEMRT__RANK_POLICIES);
    return policy;
}

uint32_t memrt__policy_limit(void)
{
    memrt__lock(MEMRT__RANK_POLICIES);
    uint32_t now = limit;
    memrt__unlock(MEMRT__RANK_POLICIES);
    return now;
}

bool memrt__policy_is_held(const memrt_policy_t *policy)
{
    bool held = false;
    memrt__lock(MEMRT__RANK_POLICIES);
    for (uint32_t index = 0; index < limit && !held; index++) {
        held = memrt__policies[index] == policy && memrt__load_relaxed(&policy->refs) != 0;
    }
    memrt__unlock(MEMRT__RANK_POLICIES);
    return held;
}

/// Called without a lock held, with a reference held; true ends the visit.
typedef bool (*visit_fn)(const memrt_policy_t *policy, void *context);

static bool visit_policies(visit_fn visit, void *context)
{
    bool ended = false;
    uint32_t indices = memrt__policy_limit();
    for (uint32_t index = 0; index < indices && !ended; index++) {
        memrt_policy_t *policy = memrt__policy_at(index);
        if (policy != NULL) {
            ended = visit(policy, context);
            memrt__policy_release(policy);
        }
    }
    return ended;
}

static bool verify_dead(const memrt_policy_t *policy, void *context)
{
    (void)context;
    if (memrt__is_guard(&policy->allocator)) {
        memrt__guard_verify_dead(&policy->allocator);
    }
    return false;
}

void memrt__policy_verify_dead(void)
{
    visit_policies(verify_dead, NULL);
}

typedef struct search {
    uintptr_t address;
    char *text;
    size_t length;
} search_t;

static bool tell_dead(const memrt_policy_t *policy, void *context)
{
    const search_t *search = context;
    return memrt__is_guard(&policy->allocator) &&
           memrt__guard_tell_dead(&policy->allocator, search->address, search->text,
                                  search->length);
}

bool memrt__policy_tell_dead(uintptr_t address, char *text, size_t length)
{
    search_t search = {address, text, length};
    text[0] = '\0';
    return visit_policies(tell_dead, &search);
}

static bool empty_guard(const memrt_policy_t *policy, void *context)
{
    (void)context;
    if (memrt__is_guard(&policy->allocator)) {
        memrt__guard_empty(&policy->allocator);
    }
    return false;
}

typedef size_t (*allocator_fn)(const memrt_allocator_t *allocator);

static const memrt_allocator_t *without_fences(const memrt_allocator_t *allocator)
{
    return memrt__is_guard(allocator) ? memrt__guard_upstream(allocator) : allocator;
}

static bool is_same(const memrt_allocator_t *a, const memrt_allocator_t *b)
{
    a = without_fences(a);
    b = without_fences(b);
    return a->ctx == b->ctx && a->alloc == b->alloc;
}

/// Whether no policy at a lower index has the same allocator.
static bool is_first_with(const memrt_policy_t *policy)
{
    bool first = true;
    memrt__lock(MEMRT__RANK_POLICIES);
    for (uint32_t index = 0; index < policy->account.index && first; index++) {
        first = memrt__policies[index] == NULL || memrt__policies[index]->scope != NULL ||
                !is_same(&memrt__policies[index]->allocator, &policy->allocator);
    }
    memrt__unlock(MEMRT__RANK_POLICIES);
    return first;
}

typedef struct sum {
    allocator_fn ask;
    size_t bytes;
} sum_t;

static bool add(const memrt_policy_t *policy, void *context)
{
    sum_t *sum = context;
    if (is_first_with(policy)) {
        sum->bytes += sum->ask(&policy->allocator);
    }
    return false;
}

/// Ask every allocator once: policies may share one.
static size_t over_allocators(allocator_fn ask)
{
    sum_t sum = {.ask = ask};
    visit_policies(add, &sum);
    return sum.bytes;
}

/// What the pool keeps for all policies is on no policy's account, but on the process's.
size_t memrt__policy_cached(const memrt_policy_t *policy)
{
    if (policy == NULL) {
        return over_allocators(memrt__allocator_cached);
    }
    return memrt__is_shared_pool(&policy->allocator) ? 0
                                                     : memrt__allocator_cached(&policy->allocator);
}

size_t memrt__policy_release_unused(void)
{
    visit_policies(empty_guard, NULL); /* into allocators that may keep it */
    size_t bytes = over_allocators(memrt__allocator_release_unused);
    memrt__policy_sweep();
    return bytes;
}
