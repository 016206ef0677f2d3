#include "runtime/stats/account.h"

#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/os/lock.h"

static memrt__account_t *first_account; /* under the lock of rank THREADS */

bool memrt__account_is_in(const memrt__account_t *account, const memrt__level_t *level)
{
    const memrt__level_t *at = account->scope;
    while (at != NULL && at != level) {
        at = at->up;
    }
    return at != NULL || account->policy == level || level == &memrt__process;
}

void memrt__account_enter(memrt__account_t *account)
{
    MEMRT__ASSERT(account->index < MEMRT__ACCOUNTS && account->shared != NULL);
    memrt__lock(MEMRT__RANK_THREADS);
    account->next = first_account;
    first_account = account;
    memrt__unlock(MEMRT__RANK_THREADS);
}

memrt__account_t *memrt__account_first(void)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_THREADS);
    return first_account;
}

void memrt__account_leave(memrt__account_t *account)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_THREADS);
    memrt__account_t **link = &first_account;
    while (*link != account) {
        MEMRT__ASSERT(*link != NULL);
        link = &(*link)->next;
    }
    *link = account->next;
}
