/// Model: two threads use and release a policy during a sweep of the policy table. The policy is
/// destroyed exactly once, after the last use.

#include "tests/models/policy/policies.h"

static memrt_policy_t *policy;
static unsigned destroyed;

void memrt__allocator_destroy(const memrt_allocator_t *allocator)
{
    (void)allocator;
    destroyed++;
    policy->alignment = 0;
}

static void *use_and_release(void *context)
{
    memrt_policy_t *own = policy;
    *(size_t *)context = own->alignment;
    memrt__policy_release(own);
    return NULL;
}

int main(void)
{
    size_t seen[2];
    policy = model_policy(1);
    memrt__policy_acquire(policy);
    pthread_t a = model_thread(use_and_release, &seen[0]);
    pthread_t b = model_thread(use_and_release, &seen[1]);
    memrt__policy_sweep();
    model_join(a);
    model_join(b);
    assert(destroyed == 1 && memrt__policies[1] == NULL);
    return 0;
}
