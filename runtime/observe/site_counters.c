#include "runtime/observe/site_counters.h"

#include "runtime/base/atomics.h"
#include "runtime/base/compiler.h"
#include "runtime/observe/intern_table.h"
#include "runtime/os/lock.h"
#include "runtime/thread/thread.h"

#define CHUNK 1024u

/// Counters of one thread for CHUNK consecutive sites. Only the owning thread writes the counters.
typedef struct chunk {
    memrt__site_counters_t counters[CHUNK];
} chunk_t;

/// Site counters of one thread, in chunks. Chunks are added under the lock of rank THREADS.
struct memrt__thread_site_counters {
    chunk_t *chunks[MEMRT__INTERNED_MAX / CHUNK]; ///< by site; written under the lock
};

static memrt__site_counters_t *find_counter(const memrt__thread_t *thread, uint32_t site)
{
    MEMRT__ASSERT(site != 0 && site <= MEMRT__INTERNED_MAX);
    chunk_t *chunk =
        thread->site_counters == NULL ? NULL : thread->site_counters->chunks[(site - 1) / CHUNK];
    return chunk == NULL ? NULL : &chunk->counters[(site - 1) % CHUNK];
}

/// Create the counter of a site whose chunk does not exist yet. NULL: out of memory.
MEMRT__COLD static memrt__site_counters_t *create_counter(memrt__thread_t *thread, uint32_t site)
{
    if (thread->site_counters == NULL &&
        !memrt__thread_extend(&thread->site_counters, sizeof(*thread->site_counters))) {
        return NULL;
    }
    memrt__thread_extend(&thread->site_counters->chunks[(site - 1) / CHUNK], sizeof(chunk_t));
    return find_counter(thread, site);
}

bool memrt__site_counters_add(uint32_t site, size_t size)
{
    memrt__thread_t *self = memrt__thread_self();
    if (self == NULL) {
        return false;
    }
    memrt__site_counters_t *counter = find_counter(self, site);
    if (MEMRT__UNLIKELY(counter == NULL) && (counter = create_counter(self, site)) == NULL) {
        return false;
    }
    memrt__own_add(&counter->count, 1);
    memrt__own_add(&counter->bytes, size);
    return true;
}

memrt__site_counters_t memrt__site_counters_at(uint32_t site)
{
    memrt__site_counters_t sum = {0};
    memrt__lock(MEMRT__RANK_THREADS);
    for (const memrt__thread_t *thread = memrt__thread_first(); thread != NULL;
         thread = thread->next) {
        const memrt__site_counters_t *counter = find_counter(thread, site);
        if (counter != NULL) {
            sum.count += memrt__load_relaxed(&counter->count);
            sum.bytes += memrt__load_relaxed(&counter->bytes);
        }
    }
    memrt__unlock(MEMRT__RANK_THREADS);
    return sum;
}
