/// A policy is let go by two while a sweep goes by: it is destroyed once, after all use.

#include "tests/models/model.h"

#include "runtime/alloc/policy.h"

/* The beginning, and making a policy, are not of the model. */
#define memrt__policy_start static inline start
#define memset(where, value, bytes) ((void)(where))
#define memcpy(to, from, bytes) ((void)(to), (void)(from))
#include "runtime/alloc/policy.c"

memrt__options_t memrt__options;
unsigned memrt__watch;
static memrt_policy_t *policy;
static unsigned destroyed;
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

void memrt__lock(memrt__rank_t rank)
{
    (void)rank;
    pthread_mutex_lock(&table_lock);
}

void memrt__unlock(memrt__rank_t rank)
{
    (void)rank;
    pthread_mutex_unlock(&table_lock);
}

void memrt__pool_close(const memrt_allocator_t *allocator)
{
    (void)allocator;
}

bool memrt__stats_is_idle(const memrt__account_t *account)
{
    (void)account;
    return true;
}

void memrt__stats_retire(memrt__account_t *account)
{
    (void)account;
}

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
    policy = malloc(sizeof(*policy));
    policy->refs = 1;
    policy->alignment = 64;
    memrt__policies[1] = policy;
    limit = 2;
    memrt__policy_acquire(policy);
    pthread_t a = model_thread(use_and_release, &seen[0]);
    pthread_t b = model_thread(use_and_release, &seen[1]);
    sweep();
    model_join(a);
    model_join(b);
    assert(destroyed == 1 && memrt__policies[1] == NULL);
    return 0;
}
