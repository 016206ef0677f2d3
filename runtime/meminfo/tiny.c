#include "runtime/meminfo/tiny.h"

#include "runtime/event/guard_sampling.h"
#include "runtime/policy/memory_limit.h"

void *memrt__tiny_alloc(memrt_policy_t *policy, size_t size)
{
    memrt__thread_t *self = memrt__thread_or_null();
    memrt__shard_t *shard = self == NULL ? NULL : memrt__thread_shard(self, policy->account.index);
    unsigned class = (unsigned)memrt__class_of_tiny(size);
    memrt__tiny_t *tiny = shard != NULL ? memrt__thread_cache_take(self, class) : NULL;
    if (tiny != NULL && !memrt__limit_ensure(shard, &policy->account, size)) {
        memrt__thread_cache_return(class, tiny);
        tiny = NULL;
    }
    if (tiny == NULL) {
        return NULL;
    }
    MEMRT__ASSERT(policy->tiny && policy->fast);
    memrt__tiny_write(tiny, memrt__tiny_word_of(policy->account.index), size);
    memrt__count_in(&shard->made[memrt__count_of_usual_block(MEMRT__KIND_TINY, size)], 1);
    memrt__shard_grow(shard, &policy->account, size);
    memrt__probe_alloc(tiny + 1, size, policy->account.index, MEMRT_KIND_BLOCK);
    return memrt__tiny_data(tiny);
}

void memrt__tiny_end(memrt__tiny_t *tiny)
{
    memrt_policy_t *policy = memrt__tiny_policy(tiny);
    size_t size = memrt__tiny_size(tiny);
    MEMRT__ASSERT(policy != NULL && size - 1 < MEMRT_TINY_MAX);
    memrt__tiny_cache(tiny);
    memrt__tally_t tally = memrt__tally(&policy->account);
    memrt__guard_note_free(&tally);
    memrt__tally_shrink(&tally, size);
    memrt__tally_freed(&tally, MEMRT__KIND_TINY, size);
}
