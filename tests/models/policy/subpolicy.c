/// Model: two threads use a subpolicy and release its scope, during a sweep of the policy table.
/// The subpolicy is destroyed after the last use, and never while a thread holds the scope.

#include "tests/models/policy/policies.h"

#include "runtime/policy/scope.c"

memrt__shard_t memrt__closed_shard;
memrt__thread_t memrt__no_thread = MEMRT__NO_THREAD;
MEMRT__THREAD_LOCAL memrt__thread_t *memrt__self = &memrt__no_thread;
static memrt_scope_t scope;

memrt__thread_t *memrt__thread_make(void)
{
    return NULL; /* no thread of the model enters a scope */
}

void memrt__allocator_destroy(const memrt_allocator_t *allocator)
{
    (void)allocator;
    assert(!"the base is held, and a subpolicy uses the allocator of the base");
}

static memrt_policy_t *model_subpolicy(memrt_policy_t *base)
{
    memrt_policy_t *subpolicy = model_policy(2);
    subpolicy->refs = 0; /* only the scope and the base policy are referenced */
    subpolicy->base = base;
    subpolicy->scope = &scope;
    subpolicy->next_in_scope = NULL;
    subpolicy->link_of_base = &base->first_subpolicy;
    base->first_subpolicy = subpolicy;
    base->subpolicies = 1;
    scope.subpolicies = subpolicy;
    return subpolicy;
}

static void *use_and_let_go(void *context)
{
    memrt_policy_t *subpolicy = scope.subpolicies;
    *(size_t *)context = subpolicy->alignment;
    memrt__scope_release(&scope);
    return NULL;
}

int main(void)
{
    size_t seen[2];
    memrt_policy_t *base = model_policy(1);
    model_subpolicy(base);
    memrt__scope_acquire(&scope);
    memrt__scope_acquire(&scope);
    pthread_t a = model_thread(use_and_let_go, &seen[0]);
    pthread_t b = model_thread(use_and_let_go, &seen[1]);
    memrt__policy_sweep();
    model_join(a);
    model_join(b);
    assert(seen[0] == 64 && seen[1] == 64);
    memrt__policy_sweep();
    assert(memrt__policies[2] == NULL && scope.subpolicies == NULL);
    return 0;
}
