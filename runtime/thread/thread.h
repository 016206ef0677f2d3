#ifndef MEMRT_THREAD_THREAD_H
#define MEMRT_THREAD_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <memrt/meminfo.h>

#include "runtime/base/atomics.h"
#include "runtime/base/compiler.h"
#include "runtime/thread/shard_layout.h"
#include "runtime/thread/slots.h"

/// Per-thread record: all state that memrt keeps for one thread, mainly shards and cached blocks.
///
/// Records are never freed. When a thread ends, the record keeps its counts and waits for the next
/// new thread. So the number of records is the maximum number of concurrent threads. Only the owner
/// writes a record, unless the comment of a member names another writer.
///
/// A thread returns its record in a thread-specific destructor. A later destructor of another
/// library may take a record again. After the last round of destructors nothing returns that
/// record. The robust mutex `alive` then shows that the owner is dead. A later thread that finds no
/// free record reclaims the record.

#define MEMRT__CHUNK 64u

/// Record of a thread. The members that every allocation reads come first, in one cache line. "Own"
/// marks a member that only the owner writes; "THREADS" means under the lock of that rank.
typedef struct memrt__thread {
    struct memrt__thread *next; ///< fixed once linked; in one line with the first home, for
                                ///< memrt__home_forget()
    memrt__home_t homes[MEMRT__HOMES];
    memrt__scope_slot_t scope;
    memrt__sampling_slot_t sampling;
    _Alignas(MEMRT__CACHE_LINE) memrt__shard_t first;        ///< own; shard of account 0
    memrt__shard_t **chunks[MEMRT__ACCOUNTS / MEMRT__CHUNK]; ///< own, written under THREADS; other
                                                             ///< shards: MEMRT__CHUNK pointers
    memrt__cache_slot_t cache;
    pthread_mutex_t alive; ///< robust; held by the owner of the record
    bool in_use;           ///< under THREADS; a thread owns the record
    uint32_t number;       ///< own; operating system's id of the owner
    memrt__usage_slot_t usage;
    memrt__dtor_slot_t dtors;
    struct memrt__thread_site_counters
        *site_counters;                ///< own, written under THREADS; counts by site
    struct memrt__trace_buffer *trace; ///< own, written under THREADS; buffer of trace events
} memrt__thread_t;

/// Record of the calling thread; &memrt__no_thread before its first call.
extern MEMRT__THREAD_LOCAL memrt__thread_t *memrt__self;
MEMRT__COLD memrt__thread_t *memrt__thread_make(void);

/// Shard that counts nothing and is never written: no allocation takes its fast path, because it is
/// short of more bytes than a block can have.
#define MEMRT__CLOSED ((size_t)(PTRDIFF_MIN / 2))
extern MEMRT__HIDDEN memrt__shard_t memrt__closed_shard;

/// Record of threads without a record, never written: no home is set, and each bin is both empty
/// and full. So a fast path needs no test for a record, and leads to the slow path.
extern MEMRT__HIDDEN memrt__thread_t memrt__no_thread;

#define MEMRT__NO_THREAD_HOME                                                                      \
    {.key = MEMRT__NO_HOME,                                                                        \
     .shard = &memrt__closed_shard,                                                                \
     .states = {MEMRT__NO_STATE, MEMRT__NO_STATE},                                                 \
     .tiny = MEMRT__NO_TINY,                                                                       \
     .account = MEMRT__NO_ACCOUNT}
#define MEMRT__NO_THREAD                                                                           \
    {                                                                                              \
        .homes = {MEMRT__NO_THREAD_HOME, MEMRT__NO_THREAD_HOME, MEMRT__NO_THREAD_HOME}             \
    }

/// Allocate `size` zeroed bytes and store their address in `slot`, a pointer in the record of the
/// calling thread. Threads that walk the records see either NULL or zeroed memory. Failure: returns
/// false when out of memory, or when the lock is not available during a fork.
MEMRT__COLD bool memrt__thread_extend(void *slot, size_t size);

/// Return the bytes of all records, with the memory of memrt__thread_extend().
size_t memrt__thread_record_bytes(void);

/// Moments in the life of a record at which modules set or clear their slots.
typedef enum memrt__thread_moment {
    MEMRT__THREAD_NEW,    ///< a record was created, and is not linked yet
    MEMRT__THREAD_ENDING, ///< the calling thread ends, still has the record, and may allocate
    MEMRT__THREAD_ENDED,  ///< the thread ended; the caller is that thread, or found it dead
    MEMRT__THREAD_RESET,  ///< the record is about to be free for another thread; under THREADS
    MEMRT__THREAD_LOST,   ///< in a forked child: the owner stayed in the parent, at any step
    MEMRT__THREAD_MOMENTS
} memrt__thread_moment_t;

typedef void (*memrt__thread_fn)(memrt__thread_t *thread);

/// Callbacks of a module by moment; NULL: none.
typedef struct memrt__thread_module {
    memrt__thread_fn at[MEMRT__THREAD_MOMENTS];
} memrt__thread_module_t;

/// Add a module with a slot, of MEMRT__THREAD_MODULES at most, before the first record is created.
/// Callbacks run in the order in which the modules were added.
#define MEMRT__THREAD_MODULES 5u
void memrt__thread_add_module(const memrt__thread_module_t *module);

/// Return the first record; `next` links the rest. Under the lock of rank THREADS.
memrt__thread_t *memrt__thread_first(void);

/// Make the records of dead threads, which did not return them, available to new threads.
void memrt__thread_reap(void);

#if MEMRT_DEBUG
/// Return whether the invariants of all thread records hold: completely for the calling thread and
/// for records without a thread. Takes the lock of rank THREADS.
bool memrt__thread_is_valid(void);
#endif

/// In a forked child: release the records of all other threads for reuse. The blocks in the thread
/// caches of released records are lost.
void memrt__thread_forked(void);

/// Return the record of the calling thread; NULL: none.
static inline memrt__thread_t *memrt__thread_or_null(void)
{
    memrt__thread_t *self = memrt__self;
    return MEMRT__LIKELY(self != &memrt__no_thread) ? self : NULL;
}

/// Return the record of the calling thread, and make one if necessary. NULL: out of memory.
static inline memrt__thread_t *memrt__thread_self(void)
{
    memrt__thread_t *self = memrt__thread_or_null();
    return MEMRT__LIKELY(self != NULL) ? self : memrt__thread_make();
}

/// Return the shard of a thread for an account; NULL: none yet.
static inline memrt__shard_t *memrt__thread_shard(const memrt__thread_t *thread, uint32_t index)
{
    if (MEMRT__LIKELY(index == 0 || !MEMRT_COUNTERS)) {
        return (memrt__shard_t *)&thread->first;
    }
    memrt__shard_t **chunk = thread->chunks[index / MEMRT__CHUNK];
    return chunk == NULL ? NULL : chunk[index % MEMRT__CHUNK];
}

#endif
