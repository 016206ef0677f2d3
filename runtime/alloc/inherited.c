#include "runtime/alloc/inherited.h"

#include <string.h>

#include "runtime/base/failure.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"
#include "runtime/base/size.h"
#include "runtime/stats/stats.h"

static size_t whole_pages(void)
{
    size_t page = memrt__os_page_size();
    return (sizeof(memrt_policy_t) + page - 1) & ~(page - 1);
}

/// From the system: the C library's heap may have been left locked by a thread that is gone.
static memrt_policy_t *new_stand_in(void)
{
    return memrt__failure_due() ? NULL : memrt__os_map(whole_pages(), 0, memrt__os_page_size());
}

void memrt__inherited_free(memrt_policy_t *stand_in)
{
    (void)memrt__os_unmap(stand_in, whole_pages()); /* refused: a page is lost */
}

/// What threads without a record counted was counted of these blocks.
static void take_shared(memrt_policy_t *from, memrt_policy_t *to)
{
    size_t *own = from->shared.sizes;
    to->shared = from->shared;
    to->shared.sizes = own == NULL ? NULL : to->shared_sizes;
    memcpy(to->shared_sizes, from->shared_sizes, sizeof(to->shared_sizes));
    from->shared = (memrt__shard_t){.sizes = own};
    memset(from->shared_sizes, 0, sizeof(from->shared_sizes));
}

/// False: there is no memory, or no index, for a stand-in.
static bool part_ways(memrt_policy_t *policy)
{
    uint32_t index = memrt__policy_free_index();
    memrt_policy_t *stand_in = index < MEMRT__ACCOUNTS ? new_stand_in() : NULL;
    if (stand_in == NULL) {
        return false;
    }
    memrt__policy_put_part(stand_in, policy->base, policy->scope, policy->account.index);
    stand_in->account.origin = MEMRT__INHERITED;
    take_shared(policy, stand_in);
    memrt__policy_put(policy, index);
    return true;
}

void memrt__inherited_forked(void)
{
    uint32_t limit = memrt__policy_limit();
    if (memrt__self != NULL) {
        memrt__self->part_of = NULL; /* the part will have another index, so another shard */
    }
    memrt__lock(MEMRT__RANK_POLICIES);
    for (uint32_t index = 0; index < limit; index++) {
        memrt_policy_t *policy = memrt__policies[index];
        if (policy != NULL && !memrt__is_inherited(policy)) {
            bool together = !memrt__stats_is_settled(&policy->account) && !part_ways(policy);
            policy->account.origin = together ? MEMRT__MIXED : MEMRT__OWN;
        }
    }
    memrt__unlock(MEMRT__RANK_POLICIES);
}
