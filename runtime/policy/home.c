#include "runtime/policy/home.h"

#include "runtime/os/lock.h"

static void close_home(memrt__home_t *home)
{
    memrt__store_relaxed(&home->key, MEMRT__NO_HOME);
    home->shard = &memrt__closed_shard;
    home->states[0] = home->states[1] = MEMRT__NO_STATE;
    home->tiny = MEMRT__NO_TINY;
    home->tiny_max = 0;
    home->account = MEMRT__NO_ACCOUNT;
}

void memrt__home_close_all(memrt__thread_t *thread)
{
    for (unsigned i = 0; i < MEMRT__HOMES; i++) {
        close_home(&thread->homes[i]);
    }
}

void memrt__home_clear_all(memrt__thread_t *self)
{
    bool was_set = memrt__load_relaxed(&self->homes[0].key) != MEMRT__NO_HOME;
    memrt__store_relaxed(&self->homes[0].key, MEMRT__NO_HOME);
    memrt__store_relaxed(&self->homes[1].key, MEMRT__NO_HOME);
    if (was_set) {
        memrt__home_copy(&self->homes[0], &self->homes[1]);
    }
    close_home(&self->homes[MEMRT__DEFAULT_HOME]);
}

static void forget_policy(memrt__home_t *home, const memrt_policy_t *policy)
{
    if (memrt__home_is_set_for(home, policy)) {
        (void)memrt__cas_relaxed(&home->key, (size_t)policy, MEMRT__NO_HOME);
    }
}

void memrt__home_forget(const memrt_policy_t *policy)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_POLICIES);
    memrt__lock(MEMRT__RANK_THREADS);
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        for (unsigned i = 0; i < MEMRT__HOMES; i++) {
            forget_policy(&t->homes[i], policy);
            forget_policy(&t->homes[i], policy->base);
        }
    }
    memrt__unlock(MEMRT__RANK_THREADS);
}

#if MEMRT_DEBUG

static bool is_home_valid(const memrt__thread_t *self, const memrt__home_t *home)
{
    bool closed = home->shard == &memrt__closed_shard;
    return MEMRT__HOLDS(home->shard != NULL) &&
           MEMRT__HOLDS(closed == (home->states[0] == MEMRT__NO_STATE)) &&
           MEMRT__HOLDS(closed == (home->states[1] == MEMRT__NO_STATE)) &&
           MEMRT__HOLDS(!closed || home->tiny_max == 0) &&
           MEMRT__HOLDS(closed || home->shard == memrt__thread_shard(self, home->account));
}

bool memrt__home_is_valid(void)
{
    const memrt__thread_t *self = memrt__thread_or_null();
    bool valid = MEMRT__HOLDS(memrt__closed_shard.alloc_left == MEMRT__CLOSED);
    for (unsigned i = 0; self != NULL && valid && i < MEMRT__HOMES; i++) {
        valid = is_home_valid(self, &self->homes[i]);
    }
    return valid;
}

#endif
