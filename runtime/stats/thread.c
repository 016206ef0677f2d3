#include "runtime/stats/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/shield.h"
#include "runtime/config/fault_injection.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"

MEMRT__THREAD_LOCAL memrt__thread_t *memrt__self;

size_t memrt__thread_left;

static memrt__thread_t *first_thread; /* under the lock of rank THREADS */

static pthread_key_t record_key;
static pthread_once_t record_key_once = PTHREAD_ONCE_INIT;

static memrt__thread_fn on_new_record, on_ended_record; /* set once */

void memrt__thread_hooks(memrt__thread_fn made, memrt__thread_fn at_end)
{
    on_new_record = made;
    on_ended_record = at_end;
}

static void *alloc_zeroed_lines(size_t size)
{
    if (memrt__fault_is_due()) {
        return NULL;
    }
    MEMRT__ASSERT(size != 0);
    size = (size + MEMRT__CACHE_LINE - 1) & ~(size_t)(MEMRT__CACHE_LINE - 1);
    void *memory = aligned_alloc(MEMRT__CACHE_LINE, size);
    if (memory != NULL) {
        memset(memory, 0, size);
    }
    return memory;
}

/// Move the deferred destructors of a dead thread to memrt__thread_left. Under the lock of rank
/// THREADS.
static void hand_over_deferred(memrt__thread_t *thread)
{
    size_t *end = (size_t *)&thread->put_off;
    while (*end != 0) {
        end = memrt__put_off_link((memrt_meminfo_t *)*end);
    }
    memrt__store_relaxed(end, memrt__load_relaxed(&memrt__thread_left));
    memrt__store_relaxed(&memrt__thread_left, (size_t)thread->put_off);
    thread->put_off = NULL;
}

/// Reset a record for the next thread. Destructors that the thread ended inside of do not resume. A
/// scope that the thread did not leave is left. Under the lock of rank THREADS.
static void reset_record(memrt__thread_t *thread)
{
    hand_over_deferred(thread);
    MEMRT__ASSERT(thread->put_off == NULL);
    thread->destructors = 0;
    thread->scope = NULL;
    thread->part_of = NULL;
}

/// Release a record for the next thread. If a long fork keeps the lock away, the record stays in
/// use, and memrt__thread_reap() finds the record after the thread has ended.
static void release_record(memrt__thread_t *thread)
{
    if (!memrt__lock_or_fork(MEMRT__RANK_THREADS)) {
        return;
    }
    MEMRT__ASSERT(thread->in_use);
    reset_record(thread);
    thread->in_use = false;
    pthread_mutex_unlock(&thread->alive);
    memrt__unlock(MEMRT__RANK_THREADS);
}

static void end_record(memrt__thread_t *thread)
{
    if (on_ended_record != NULL) {
        on_ended_record(thread);
    }
    release_record(thread);
}

/// Run the deferred destructors of an ending thread, left over if the thread ended inside another
/// destructor. If a deferred destructor ends the thread again, the C library calls return_record()
/// again.
static void run_deferred_dtors(memrt__thread_t *thread)
{
    thread->destructors = 0;
    if (thread->put_off != NULL) {
        (void)pthread_setspecific(record_key, thread); /* cannot fail: the key already has a slot */
        thread->end_put_off();
        (void)pthread_setspecific(record_key, NULL);
    }
}

/// Return the record of an ending thread, with all counts, for another thread. Code that allocates
/// later on this thread takes a record again, and this function runs again.
static void return_record(void *record)
{
    run_deferred_dtors(record);
    memrt__self = NULL;
    end_record(record);
}

static void create_record_key(void)
{
    if (pthread_key_create(&record_key, return_record) != 0) {
        memrt__abort("no thread-specific key is left: the process has created too many");
    }
}

static void init_alive_mutex(memrt__thread_t *thread)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&thread->alive, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

/// Make the calling thread the owner of a record. Either the record is new, or the caller holds the
/// lock of rank THREADS.
static void claim_record(memrt__thread_t *thread)
{
    MEMRT__ASSERT(!thread->in_use || thread == memrt__self);
    thread->in_use = true;
    pthread_mutex_trylock(&thread->alive); /* succeeds: no other thread owns the record */
}

static memrt__thread_t *take_free_record(void)
{
    if (!memrt__lock_or_fork(MEMRT__RANK_THREADS)) {
        return NULL;
    }
    memrt__thread_t *thread = first_thread;
    while (thread != NULL && thread->in_use) {
        thread = thread->next;
    }
    if (thread != NULL) {
        claim_record(thread);
        MEMRT__ASSERT(thread->put_off == NULL && thread->destructors == 0);
    }
    memrt__unlock(MEMRT__RANK_THREADS);
    return thread;
}

/// Take a record whose owner thread has ended; return whether the caller now owns the record. Under
/// the lock of rank THREADS.
static bool claim_dead_record(memrt__thread_t *thread)
{
    int status = thread->in_use ? pthread_mutex_trylock(&thread->alive) : EBUSY;
    if (status == EOWNERDEAD) {
        pthread_mutex_consistent(&thread->alive);
    } else if (status == 0) {
        pthread_mutex_unlock(&thread->alive);
    }
    return status == EOWNERDEAD;
}

/// Take a record that a dead thread did not return; the caller must end the record. NULL: none.
static memrt__thread_t *take_dead_record(void)
{
    if (!memrt__lock_or_fork(MEMRT__RANK_THREADS)) {
        return NULL;
    }
    memrt__thread_t *thread = first_thread;
    while (thread != NULL && !claim_dead_record(thread)) {
        thread = thread->next;
    }
    memrt__unlock(MEMRT__RANK_THREADS);
    return thread;
}

void memrt__thread_reap(void)
{
    memrt__thread_t *thread;
    while ((thread = take_dead_record()) != NULL) {
        end_record(thread);
    }
}

static bool link_record(memrt__thread_t *thread)
{
    if (!memrt__lock_or_fork(MEMRT__RANK_THREADS)) {
        pthread_mutex_unlock(&thread->alive);
        pthread_mutex_destroy(&thread->alive);
        free(thread);
        return false;
    }
    thread->next = first_thread;
    first_thread = thread;
    memrt__unlock(MEMRT__RANK_THREADS);
    return true;
}

static memrt__thread_t *create_record(void)
{
    memrt__thread_t *thread = alloc_zeroed_lines(sizeof(*thread));
    if (thread == NULL) {
        return NULL;
    }
    init_alive_mutex(thread);
    claim_record(thread);
    if (on_new_record != NULL) {
        on_new_record(thread);
    }
    return link_record(thread) ? thread : NULL;
}

static memrt__thread_t *take_or_create_record(void)
{
    memrt__thread_t *thread = take_free_record();
    if (thread == NULL) {
        memrt__thread_reap();
        thread = take_free_record();
    }
    return thread == NULL ? create_record() : thread;
}

memrt__thread_t *memrt__thread_make(void)
{
    MEMRT__KEEP_ERRNO;
    pthread_once(&record_key_once, create_record_key);
    memrt__thread_t *thread = take_or_create_record();
    if (thread == NULL) {
        return NULL;
    }
    if (pthread_setspecific(record_key, thread) != 0) {
        end_record(thread); /* without a destructor, the record would never be returned */
        return NULL;
    }
    MEMRT__ASSERT(memrt__self == NULL && thread->in_use);
    thread->number = (uint32_t)memrt__os_thread_id();
    memrt__self = thread;
    return thread;
}

bool memrt__thread_extend(void *slot, size_t size)
{
    MEMRT__KEEP_ERRNO;
    void *more = alloc_zeroed_lines(size);
    if (more == NULL) {
        return false;
    }
    if (!memrt__lock_or_fork(MEMRT__RANK_THREADS)) {
        free(more);
        return false;
    }
    memcpy(slot, &more, sizeof(more));
    memrt__unlock(MEMRT__RANK_THREADS);
    return true;
}

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

memrt__thread_t *memrt__thread_first(void)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_THREADS);
    return first_thread;
}

/// Empty the bins of a record after a fork. The owner may have been in the middle of a change, so
/// the members of a bin may be inconsistent.
static void clear_bins(memrt__thread_t *thread)
{
    for (size_t class = 0; class < MEMRT__CLASSES; class++) {
        memrt__bin_t *bin = &thread->bins[class];
        *bin = (memrt__bin_t){.bytes = bin->bytes};
    }
    memset(thread->limits, 0, sizeof(thread->limits));
    thread->asked = 0;
}

void memrt__thread_adopt_left(memrt__thread_t *self)
{
    if (!memrt__lock_or_fork(MEMRT__RANK_THREADS)) {
        return;
    }
    MEMRT__ASSERT(self == memrt__self && self->put_off == NULL);
    self->put_off = (memrt_meminfo_t *)memrt__load_relaxed(&memrt__thread_left);
    memrt__store_relaxed(&memrt__thread_left, 0);
    memrt__unlock(MEMRT__RANK_THREADS);
}

/// Create the `alive` mutexes anew, because threads of the parent hold the old ones.
void memrt__thread_forked(void)
{
    for (memrt__thread_t *thread = first_thread; thread != NULL; thread = thread->next) {
        init_alive_mutex(thread);
        if (thread != memrt__self) {
            clear_bins(thread);
            reset_record(thread);
            thread->in_use = false;
        }
    }
    if (memrt__self != NULL) {
        claim_record(memrt__self);
        memrt__self->number = (uint32_t)memrt__os_thread_id();
    }
}

#if MEMRT_DEBUG

/// Check the record of the calling thread. Deferred destructors wait for a running destructor.
static bool is_own_record_valid(const memrt__thread_t *self)
{
    return MEMRT__HOLDS(self->in_use) && MEMRT__HOLDS(self->number != 0) &&
           MEMRT__HOLDS(self->put_off == NULL || self->destructors != 0) &&
           MEMRT__HOLDS(self->part_of == NULL || self->part != NULL);
}

/// Check a record without a thread.
static bool is_free_record_valid(const memrt__thread_t *thread)
{
    return MEMRT__HOLDS(thread->put_off == NULL) && MEMRT__HOLDS(thread->destructors == 0) &&
           MEMRT__HOLDS(thread->scope == NULL) && MEMRT__HOLDS(thread->part_of == NULL);
}

bool memrt__thread_is_valid(void)
{
    bool valid = true, listed = false;
    memrt__lock(MEMRT__RANK_THREADS);
    for (const memrt__thread_t *t = first_thread; valid && t != NULL; t = t->next) {
        listed = listed || t == memrt__self;
        valid = t == memrt__self ? is_own_record_valid(t) : t->in_use || is_free_record_valid(t);
    }
    valid = valid && MEMRT__HOLDS(listed == (memrt__self != NULL));
    memrt__unlock(MEMRT__RANK_THREADS);
    return valid;
}

#endif
