#include "runtime/policy/policy_table.h"

#include <string.h>

#include "runtime/base/size.h"
#include "runtime/os/lock.h"
#include "runtime/stats/stats.h"

memrt_policy_t *memrt__policies[MEMRT__ACCOUNTS];
memrt_policy_t memrt__default_policy;
uint32_t memrt__policy_table_end;

bool memrt__is_name(const char *name)
{
    return strnlen(name, MEMRT_NAME_MAX + 1) <= MEMRT_NAME_MAX;
}

uint32_t memrt__policy_free_index(void)
{
    uint32_t index = 1;
    while (index < memrt__policy_table_end && memrt__policies[index] != NULL) {
        index++;
    }
    return index;
}

void memrt__policy_put(memrt_policy_t *policy, uint32_t index)
{
    policy->account.index = index;
    memrt__policies[index] = policy;
    memrt__policy_table_end = (uint32_t)memrt__size_max(memrt__policy_table_end, index + 1);
}

const memrt_policy_t *memrt__policy_find(const memrt_policy_t *address)
{
    for (uint32_t index = 0; index < memrt__policy_table_end; index++) {
        if (address != NULL && memrt__policies[index] == address) {
            return address;
        }
    }
    return NULL;
}

uint32_t memrt__policy_limit(void)
{
    memrt__lock(MEMRT__RANK_POLICIES);
    uint32_t now = memrt__policy_table_end;
    memrt__unlock(MEMRT__RANK_POLICIES);
    return now;
}

bool memrt__policy_is_used(const memrt_policy_t *policy)
{
    return memrt__policy_has_references(policy) || policy->parts != 0 ||
           !memrt__stats_is_idle(&policy->account);
}
