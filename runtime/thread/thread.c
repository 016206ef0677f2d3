#include "runtime/thread/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/shield.h"
#include "runtime/config/fault_injection.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"

memrt__shard_t memrt__closed_shard = {.alloc_left = MEMRT__CLOSED};
memrt__thread_t memrt__no_thread = MEMRT__NO_THREAD;
MEMRT__THREAD_LOCAL memrt__thread_t *memrt__self = &memrt__no_thread;

static memrt__thread_t *first_thread; /* under the lock of rank THREADS */
static size_t record_bytes;           /* written under the same lock; memory of all records */

static pthread_key_t record_key;
static pthread_once_t record_key_once = PTHREAD_ONCE_INIT;

static const memrt__thread_module_t *modules[MEMRT__THREAD_MODULES]; /* set before any record */
static size_t module_count;

void memrt__thread_add_module(const memrt__thread_module_t *module)
{
    modules[module_count++] = module;
}

/// Call the callbacks that the modules added for a moment of a record.
static void update_slots(memrt__thread_t *thread, memrt__thread_moment_t moment)
{
    for (size_t i = 0; i < module_count; i++) {
        memrt__thread_fn callback = modules[i]->at[moment];
        if (callback != NULL) {
            callback(thread);
        }
    }
}

/// Allocate zeroed bytes. Failure: returns NULL when out of memory.
static void *alloc_zeroed(size_t alignment, size_t size)
{
    if (memrt__fault_is_due()) {
        return NULL;
    }
    MEMRT__ASSERT(size != 0);
    size = (size + alignment - 1) & ~(alignment - 1);
    void *memory = aligned_alloc(alignment, size);
    if (memory != NULL) {
        memset(memory, 0, size);
    }
    return memory;
}

/// Release a record for the next thread. If a long fork keeps the lock away, the record stays in
/// use, and memrt__thread_reap() finds the record after the thread has ended.
static void release_record(memrt__thread_t *thread)
{
    if (!memrt__lock_or_fork(MEMRT__RANK_THREADS)) {
        return;
    }
    MEMRT__ASSERT(thread->in_use);
    update_slots(thread, MEMRT__THREAD_RESET);
    thread->in_use = false;
    pthread_mutex_unlock(&thread->alive);
    memrt__unlock(MEMRT__RANK_THREADS);
}

static void end_record(memrt__thread_t *thread)
{
    update_slots(thread, MEMRT__THREAD_ENDED);
    release_record(thread);
}

/// Return the record of an ending thread, with all counts, for another thread. Code that allocates
/// later on this thread takes a record again, and this function runs again. While the modules
/// finish the work of the thread, the key keeps the record: if a destructor ends the thread again,
/// the C library calls this function again.
static void return_record(void *record)
{
    (void)pthread_setspecific(record_key, record); /* cannot fail: the key already has a slot */
    update_slots(record, MEMRT__THREAD_ENDING);
    (void)pthread_setspecific(record_key, NULL);
    memrt__self = &memrt__no_thread;
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
        MEMRT__ASSERT(thread->dtors.deferred == NULL && thread->dtors.depth == 0);
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

#define PAGE ((size_t)4096) /* bytes */
#define PLACE 1344u         /* bytes between the start of a page and a record */

/// A record and its place in a page. The data of a block with a span for itself, and of a
/// mapping, begins in the first 1,088 bytes of a page. While a store there is in progress,
/// processors delay loads from the same place in other pages, because they compare the low 12 bits
/// of addresses first. So the members of the record that every allocation reads, and the bins of
/// medium blocks, are at other places.
typedef struct placed_record {
    struct placed_record *next; ///< fixed once linked; leak checkers find the memory by its start
    char unused[PLACE - sizeof(void *)];
    memrt__thread_t thread;
} placed_record_t;

_Static_assert(sizeof(placed_record_t) <= 2 * PAGE, "a record takes two pages");

static placed_record_t *first_placed; /* under THREADS */

static bool link_record(placed_record_t *placed)
{
    memrt__thread_t *thread = &placed->thread;
    if (!memrt__lock_or_fork(MEMRT__RANK_THREADS)) {
        pthread_mutex_unlock(&thread->alive);
        pthread_mutex_destroy(&thread->alive);
        free(placed);
        return false;
    }
    thread->next = first_thread;
    first_thread = thread;
    placed->next = first_placed;
    first_placed = placed;
    memrt__own_add(&record_bytes, sizeof(*placed));
    memrt__unlock(MEMRT__RANK_THREADS);
    return true;
}

static memrt__thread_t *create_record(void)
{
    placed_record_t *placed = alloc_zeroed(PAGE, sizeof(*placed));
    if (placed == NULL) {
        return NULL;
    }
    memrt__thread_t *thread = &placed->thread;
    init_alive_mutex(thread);
    claim_record(thread);
    update_slots(thread, MEMRT__THREAD_NEW);
    return link_record(placed) ? thread : NULL;
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
    MEMRT__ASSERT(memrt__thread_or_null() == NULL && thread->in_use);
    thread->number = (uint32_t)memrt__os_thread_id();
    memrt__store_release(&thread->usage.started, (size_t)memrt__os_wall_ns());
    memrt__self = thread;
    return thread;
}

bool memrt__thread_extend(void *slot, size_t size)
{
    MEMRT__KEEP_ERRNO;
    void *more = alloc_zeroed(MEMRT__CACHE_LINE, size);
    if (more == NULL) {
        return false;
    }
    if (!memrt__lock_or_fork(MEMRT__RANK_THREADS)) {
        free(more);
        return false;
    }
    memcpy(slot, &more, sizeof(more));
    memrt__own_add(&record_bytes, size);
    memrt__unlock(MEMRT__RANK_THREADS);
    return true;
}

size_t memrt__thread_record_bytes(void)
{
    return memrt__load_relaxed(&record_bytes);
}

memrt__thread_t *memrt__thread_first(void)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_THREADS);
    return first_thread;
}

/// Create the `alive` mutexes anew, because threads of the parent hold the old ones.
void memrt__thread_forked(void)
{
    for (memrt__thread_t *thread = first_thread; thread != NULL; thread = thread->next) {
        init_alive_mutex(thread);
        if (thread != memrt__self) {
            update_slots(thread, MEMRT__THREAD_LOST);
            memrt__lock(MEMRT__RANK_THREADS);
            update_slots(thread, MEMRT__THREAD_RESET);
            thread->in_use = false;
            memrt__unlock(MEMRT__RANK_THREADS);
        }
    }
    memrt__thread_t *self = memrt__thread_or_null();
    if (self != NULL) {
        claim_record(self);
        self->number = (uint32_t)memrt__os_thread_id();
    }
}

#if MEMRT_DEBUG

/// Check the record of the calling thread. Deferred destructors wait for a running destructor.
static bool is_own_record_valid(const memrt__thread_t *self)
{
    return MEMRT__HOLDS(self->in_use) && MEMRT__HOLDS(self->number != 0) &&
           MEMRT__HOLDS(self->dtors.deferred == NULL || self->dtors.depth != 0);
}

/// Check a record without a thread.
static bool is_free_record_valid(const memrt__thread_t *thread)
{
    return MEMRT__HOLDS(thread->dtors.deferred == NULL) && MEMRT__HOLDS(thread->dtors.depth == 0) &&
           MEMRT__HOLDS(thread->scope.current == NULL) &&
           MEMRT__HOLDS(memrt__load_relaxed(&thread->homes[0].key) == MEMRT__NO_HOME) &&
           MEMRT__HOLDS(memrt__load_relaxed(&thread->homes[1].key) == MEMRT__NO_HOME);
}

bool memrt__thread_is_valid(void)
{
    bool valid = true, listed = false;
    memrt__lock(MEMRT__RANK_THREADS);
    for (const memrt__thread_t *t = first_thread; valid && t != NULL; t = t->next) {
        listed = listed || t == memrt__self;
        valid = t == memrt__self ? is_own_record_valid(t) : t->in_use || is_free_record_valid(t);
    }
    valid = valid && MEMRT__HOLDS(listed == (memrt__thread_or_null() != NULL));
    memrt__unlock(MEMRT__RANK_THREADS);
    return valid;
}

#endif
