#include "runtime/stats/tally.h"

#include "runtime/base/check.h"

memrt__shard_t *memrt__shard_make(memrt__thread_t *thread, const memrt__account_t *account)
{
    MEMRT__ASSERT(thread == memrt__self && account->index < MEMRT__ACCOUNTS);
    memrt__shard_t ***chunk = &thread->chunks[account->index / MEMRT__CHUNK];
    if (*chunk == NULL && !memrt__thread_extend(chunk, MEMRT__CHUNK * sizeof(**chunk))) {
        return NULL;
    }
    memrt__shard_t **shard = &(*chunk)[account->index % MEMRT__CHUNK];
    MEMRT__ASSERT(*shard == NULL);
    return memrt__thread_extend(shard, sizeof(**shard)) ? *shard : NULL;
}
