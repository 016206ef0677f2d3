#include "support/suite.h"

#include "runtime/base/atomics.h"
#include "runtime/base/lock.h"
#include "support/child.h"
#include "support/crew.h"

#define ROUNDS 5000

static void add_under_lock(size_t index, void *context)
{
    (void)index;
    size_t *plain = context;
    for (int i = 0; i < ROUNDS; i++) {
        memrt__lock(MEMRT__RANK_FAILURE);
        ++*plain;
        memrt__unlock(MEMRT__RANK_FAILURE);
    }
}

TEST(a_lock_lets_one_thread_in)
{
    size_t plain = 0;
    crew_run(4, add_under_lock, &plain);
    ck_assert_uint_eq(plain, 4 * ROUNDS);
}

static void add_under_all_locks(size_t index, void *context)
{
    (void)index;
    size_t *plain = context;
    for (int i = 0; i < ROUNDS / 5; i++) {
        memrt__lock_all();
        ++*plain;
        memrt__unlock_all();
    }
}

TEST(all_locks_are_taken_in_one_order_by_all)
{
    size_t plain = 0;
    crew_run(4, add_under_all_locks, &plain);
    ck_assert_uint_eq(plain, 4 * (ROUNDS / 5));
}

static void hold_renewed_locks(void *context)
{
    (void)context;
    memrt__lock_renew_all();
    memrt__lock_all();
    memrt__unlock_all();
}

TEST(locks_that_are_held_at_fork_can_be_made_anew_in_the_child)
{
    child_expect_success(hold_renewed_locks, NULL);
}
