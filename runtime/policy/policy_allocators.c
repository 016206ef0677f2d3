#include "runtime/policy/policy_allocators.h"

#include "runtime/alloc/adaptors/arena.h"
#include "runtime/alloc/guard/guard.h"
#include "runtime/alloc/heap/heap.h"
#include "runtime/os/lock.h"
#include "runtime/policy/policy.h"
#include "runtime/policy/policy_sweep.h"

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

size_t memrt__policy_release_unused(void)
{
    visit_policies(empty_guard, NULL); /* into upstreams, which may cache the blocks */
    size_t bytes = sum_over_allocators(memrt__allocator_release_unused);
    memrt__policy_sweep();
    return bytes;
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
