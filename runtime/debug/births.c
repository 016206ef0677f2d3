#include "runtime/debug/births.h"

#include "runtime/base/atomics.h"
#include "runtime/base/compiler.h"
#include "runtime/base/lock.h"
#include "runtime/debug/interned.h"
#include "runtime/stats/thread.h"

#define CHUNK 1024u

/// Of one thread, which alone writes them.
typedef struct chunk {
    memrt__births_t births[CHUNK];
} chunk_t;
struct memrt__thread_births {
    chunk_t *chunks[MEMRT__INTERNED_MAX / CHUNK]; ///< by site; written under the lock
};

static memrt__births_t *find(const memrt__thread_t *thread, uint32_t site)
{
    chunk_t *chunk = thread->births == NULL ? NULL : thread->births->chunks[(site - 1) / CHUNK];
    return chunk == NULL ? NULL : &chunk->births[(site - 1) % CHUNK];
}

/// The same where the thread came by none of the sites next to it before. NULL: no memory.
MEMRT__COLD static memrt__births_t *make(memrt__thread_t *thread, uint32_t site)
{
    if (thread->births == NULL && !memrt__thread_extend(&thread->births, sizeof(*thread->births))) {
        return NULL;
    }
    memrt__thread_extend(&thread->births->chunks[(site - 1) / CHUNK], sizeof(chunk_t));
    return find(thread, site);
}

bool memrt__births_add(uint32_t site, size_t size)
{
    memrt__thread_t *self = memrt__thread_self();
    if (self == NULL) {
        return false;
    }
    memrt__births_t *births = find(self, site);
    if (MEMRT__UNLIKELY(births == NULL) && (births = make(self, site)) == NULL) {
        return false;
    }
    memrt__own_add(&births->count, 1);
    memrt__own_add(&births->bytes, size);
    return true;
}

memrt__births_t memrt__births_at(uint32_t site)
{
    memrt__births_t sum = {0};
    memrt__lock(MEMRT__RANK_THREADS);
    for (const memrt__thread_t *thread = memrt__thread_first(); thread != NULL;
         thread = thread->next) {
        const memrt__births_t *births = find(thread, site);
        if (births != NULL) {
            sum.count += memrt__load_relaxed(&births->count);
            sum.bytes += memrt__load_relaxed(&births->bytes);
        }
    }
    memrt__unlock(MEMRT__RANK_THREADS);
    return sum;
}
