#ifndef MEMRT_TESTS_MODELS_POLICIES_H
#define MEMRT_TESTS_MODELS_POLICIES_H

/// The runtime's policies, their table and its sweep, over a world in which none has a block.

#include "tests/models/model.h"

#include "runtime/alloc/policy.h"

/* The beginning, and making a policy, are not of the model. */
#define memrt__policy_start static inline start
#define memset(where, value, bytes) ((void)(where))
#define memcpy(to, from, bytes) ((void)(to), (void)(from))
#include "runtime/alloc/policy.c"

memrt__options_t memrt__options;
memrt__level_t memrt__process;
unsigned memrt__watch;
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

/// A policy as it stands in the table.
static inline memrt_policy_t *model_policy(uint32_t index)
{
    memrt_policy_t *policy = malloc(sizeof(*policy));
    policy->refs = 1;
    policy->alignment = 64;
    policy->scope = NULL;
    policy->base = policy;
    policy->parts = 0;
    policy->account.index = index;
    memrt__policies[index] = policy;
    limit = index + 1;
    return policy;
}

#endif
