/// Model: two threads request the policy of a kind of memory for the first time. Both threads get
/// the same policy, and the other policy is released.

#include "tests/models/model.h"

#include "runtime/cuda/memory.c"

unsigned memrt__slow_path;
memrt__options_t memrt__options;

static memrt_policy_t created[2];
static size_t creations, releases;

memrt_status_t memrt__policy_new(const memrt_policy_options_t *options, memrt_policy_t **out)
{
    (void)options;
    *out = &created[memrt__fetch_add_relaxed(&creations, 1)];
    (*out)->alignment = 16;
    return MEMRT_OK;
}

void memrt__policy_release(memrt_policy_t *policy)
{
    memrt__fetch_add_relaxed(&releases, 1);
    policy->alignment = 0;
}

static void *request_policy(void *context)
{
    memrt_policy_t *policy = memrt__memory_policy(MEMRT_MEMORY_DEVICE);
    assert(policy->alignment == 16);
    return policy;
}

int main(void)
{
    pthread_t other = model_thread(request_policy, NULL);
    memrt_policy_t *policy = request_policy(NULL);
    model_join(other);
    assert(policy == memrt__memory_policy(MEMRT_MEMORY_DEVICE));
    assert(creations == releases + 1);
    return 0;
}
