#include "runtime/stats/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/failure.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"

MEMRT__THREAD_LOCAL memrt__thread_t *memrt__self;

static memrt__thread_t *first; /* under the lock of rank THREADS */

static pthread_key_t ending;
static pthread_once_t ending_once = PTHREAD_ONCE_INIT;

static memrt__thread_fn on_made, on_ending; /* set once */

void memrt__thread_hooks(memrt__thread_fn made, memrt__thread_fn at_end)
{
    on_made = made;
    on_ending = at_end;
}

static void *zeroed_lines(size_t size)
{
    if (memrt__failure_due()) {
        return NULL;
    }
    size = (size + MEMRT__CACHE_LINE - 1) & ~(size_t)(MEMRT__CACHE_LINE - 1);
    void *memory = aligned_alloc(MEMRT__CACHE_LINE, size);
    if (memory != NULL) {
        memset(memory, 0, size);
    }
    return memory;
}

/// Destructors that did not return, because the thread ended in them, run no more; a scope that it
/// did not leave is not the next one's.
static void set_free(memrt__thread_t *thread)
{
    thread->destructors = 0;
    thread->scope = NULL;
    thread->part_of = NULL;
    thread->in_use = false;
}

/// A thread ends: its record, counts and all, waits for another. Should code that runs later on
/// this thread allocate, it takes a record again and this runs again.
static void give_back(void *record)
{
    memrt__self = NULL;
    if (on_ending != NULL) {
        on_ending(record);
    }
    memrt__lock(MEMRT__RANK_THREADS);
    set_free(record);
    memrt__unlock(MEMRT__RANK_THREADS);
}

static void make_key(void)
{
    if (pthread_key_create(&ending, give_back) != 0) {
        memrt__abort("no thread-specific key is left: the process has made too many");
    }
}

static memrt__thread_t *take_waiting(void)
{
    memrt__lock(MEMRT__RANK_THREADS);
    memrt__thread_t *thread = first;
    while (thread != NULL && thread->in_use) {
        thread = thread->next;
    }
    if (thread != NULL) {
        thread->in_use = true;
    }
    memrt__unlock(MEMRT__RANK_THREADS);
    return thread;
}

static memrt__thread_t *make_new(void)
{
    memrt__thread_t *thread = zeroed_lines(sizeof(*thread));
    if (thread == NULL) {
        return NULL;
    }
    thread->in_use = true;
    if (on_made != NULL) {
        on_made(thread);
    }
    memrt__lock(MEMRT__RANK_THREADS);
    thread->next = first;
    first = thread;
    memrt__unlock(MEMRT__RANK_THREADS);
    return thread;
}

memrt__thread_t *memrt__thread_make(void)
{
    pthread_once(&ending_once, make_key);
    memrt__thread_t *thread = take_waiting();
    if (thread == NULL) {
        thread = make_new();
    }
    if (thread == NULL) {
        return NULL;
    }
    if (pthread_setspecific(ending, thread) != 0) {
        give_back(thread); /* a record that would never come back is not taken */
        return NULL;
    }
    thread->number = (uint32_t)memrt__os_thread_id();
    memrt__self = thread;
    return thread;
}

bool memrt__thread_extend(void *slot, size_t size)
{
    void *more = zeroed_lines(size);
    if (more == NULL) {
        return false;
    }
    memrt__lock(MEMRT__RANK_THREADS);
    memcpy(slot, &more, sizeof(more));
    memrt__unlock(MEMRT__RANK_THREADS);
    return true;
}

memrt__shard_t *memrt__shard_make(memrt__thread_t *thread, const memrt__account_t *account)
{
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

memrt__thread_t *memrt__thread_first(void)
{
    return first;
}

/// The owner may have been in the middle of changing a bin, so that its parts do not fit each
/// other.
static void lose_bins(memrt__thread_t *thread)
{
    for (size_t class = 0; class < MEMRT__CLASSES; class++) {
        memrt__bin_t *bin = &thread->bins[class];
        *bin = (memrt__bin_t){.bytes = bin->bytes};
    }
    memset(thread->limits, 0, sizeof(thread->limits));
    thread->asked = 0;
}

void memrt__thread_forked(void)
{
    for (memrt__thread_t *thread = first; thread != NULL; thread = thread->next) {
        if (thread != memrt__self) {
            lose_bins(thread);
            set_free(thread);
        }
    }
    if (memrt__self != NULL) {
        memrt__self->number = (uint32_t)memrt__os_thread_id();
    }
}
