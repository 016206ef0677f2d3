#include "runtime/stats/tally.h"

#include "runtime/base/check.h"

memrt__shard_t *memrt__shard_make(memrt__thread_t *thread, const memrt__account_t *account)
{
    MEMRT__ASSERT(thread == memrt__self && account->index < MEMRT__ACCOUNTS);
    memrt__shard_t *shard = memrt__thread_shard(thread, account->index);
    if (shard == NULL) {
        if (!memrt__thread_extend(&thread->chunks[account->index / MEMRT__CHUNK],
                                  MEMRT__CHUNK * sizeof(*shard))) {
            return NULL;
        }
        shard = memrt__thread_shard(thread, account->index);
    }
    bool serves = memrt__shard_serves(shard, account) ||
                  memrt__thread_extend(&shard->sizes, MEMRT_SIZE_BINS * sizeof(*shard->sizes));
    return serves ? shard : NULL;
}
