#include "runtime/stats/pause.h"

#include "runtime/base/size.h"
#include "runtime/os/lock.h"
#include "runtime/stats/shard_sums.h"
#include "runtime/thread/thread.h"

void memrt__stats_pause(void)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_THREADS);
    memrt__slow_path_set(MEMRT__SLOW_PAUSE, true);
}

void memrt__stats_resume(void)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_THREADS);
    memrt__slow_path_set(MEMRT__SLOW_PAUSE, false);
}

/// The lock is free at the end of the pause. During a slow fork, the caller goes on.
void memrt__stats_await_pause_slow(void)
{
    if (memrt__lock_or_fork(MEMRT__RANK_THREADS)) {
        memrt__unlock(MEMRT__RANK_THREADS);
    }
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * MEMRT__HASH_FACTOR;
    return hash ^ hash >> 29;
}

/// Add words in any order: the fences of memrt__stats_fingerprint() keep other readings apart.
static uint64_t add_words(uint64_t hash, const size_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        hash = mix(hash, memrt__load_relaxed(&words[i]));
    }
    return hash;
}

static uint64_t add_shard(uint64_t hash, const memrt__shard_t *shard)
{
    const size_t *first = &shard->promoted_in;
    hash = mix(hash, memrt__shard_bytes_out(shard));
    hash = mix(hash, memrt__shard_bytes_in(shard));
    return add_words(hash, first, (size_t)((const size_t *)(shard + 1) - first));
}

uint64_t memrt__stats_fingerprint(void)
{
    uint64_t hash = 0;
    memrt__fence_full();
    for (const memrt__account_t *a = memrt__account_first(); a != NULL; a = a->next) {
        hash = add_shard(mix(hash, a->index), a->shared);
        for (const memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
            const memrt__shard_t *shard = memrt__thread_shard(t, a->index);
            hash = shard == NULL ? hash : add_shard(hash, shard);
        }
    }
    memrt__fence_full();
    return hash;
}
