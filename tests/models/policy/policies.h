#ifndef MEMRT_TESTS_MODELS_POLICIES_H
#define MEMRT_TESTS_MODELS_POLICIES_H

/// Run the runtime's policies, policy table and sweep in a model where no policy has a block.

#include "tests/models/model.h"

#include "runtime/policy/policy.h"

/* The model leaves out start-up and the creation of policies. */
#define memrt__policy_start static inline start
#define memset(where, value, bytes) ((void)(where))
#define memcpy(to, from, bytes) ((void)(to), (void)(from))
#include "runtime/policy/policy.c"
#include "runtime/policy/policy_memory.c"
#include "runtime/policy/policy_sweep.c"
#include "runtime/policy/policy_table.c"
#include "runtime/policy/scope_tree.c"
#include "runtime/policy/subpolicy.c"

memrt__options_t memrt__options;
memrt__level_t memrt__process;
size_t memrt__limited_levels;
unsigned memrt__slow_path;
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

void memrt__heap_close(const memrt_allocator_t *allocator)
{
    (void)allocator;
}

void memrt__placed_close(const memrt_allocator_t *allocator)
{
    (void)allocator;
}

void memrt__home_forget(const memrt_policy_t *policy)
{
    (void)policy;
}

bool memrt__stats_is_idle(const memrt__account_t *account)
{
    (void)account;
    return true;
}

bool memrt__level_has_limits(const memrt__level_t *level)
{
    (void)level;
    return false; /* no level of the model has a limit */
}

void memrt__level_end_limits(memrt__level_t *level)
{
    (void)level;
}

size_t memrt__stats_idle_readings;

void memrt__stats_retire(memrt__account_t *account)
{
    (void)account;
}

/// Return a new policy in the policy table, with one reference.
static inline memrt_policy_t *model_policy(uint32_t index)
{
    memrt_policy_t *policy = malloc(sizeof(*policy));
    policy->refs = 1;
    policy->alignment = 64;
    policy->scope = NULL;
    policy->base = policy;
    policy->subpolicies = 0;
    policy->first_subpolicy = policy->next_of_base = NULL;
    policy->index = policy->account.index = index;
    policy->account.origin = MEMRT__OWN;
    memrt__policies[index] = policy;
    memrt__policy_table_end = index + 1;
    return policy;
}

#endif
