#ifndef MEMRT_BINDINGS_CORE_POLICY_RECORD_H
#define MEMRT_BINDINGS_CORE_POLICY_RECORD_H

#include "core/cpython_layout.h"
#include "core/interpreter.h"
#include "support/binding.h"

/// Record of the last lookup of the current policy, so that allocations of compiled code skip the
/// lookup while the context stays the same. Each thread has a record.
///
/// CPython caches the value of a context variable in the variable, and checks the id of the thread
/// state and the version of its context. The record is valid while the caches of NumPy's variable
/// and of the scope variable hold the recorded values for the calling thread. Every change of
/// context therefore invalidates the record: ContextVar.set(), Context.run(), tasks, greenlets, and
/// other threads.
///
/// The record borrows all objects. Values compare by address, so all records are dropped before a
/// recorded address may be reused: when a handler of memrt dies, and before a context gets new
/// scope entries. Other handlers are never recorded, except NumPy's default handler, which lives
/// until the process ends.
///
/// Threads: memrt__policy_record_read() needs no GIL; without the GIL no record is valid. All other
/// functions need the GIL of the main interpreter.

typedef struct memrt_policy_record {
    const PyThreadState *thread; ///< attached state of the thread at the lookup; NULL: no record
    size_t generation;           ///< value of memrt__policy_record_generation at the lookup
    PyObject *handler;           ///< value of NumPy's variable
    PyObject *entries;           ///< value of the scope variable; NULL: any
    memrt_policy_t *policy;
} memrt_policy_record_t;

/// Record of the calling thread, and the number of times that all records were dropped. Only for
/// the functions of this header.
extern MEMRT_THREAD_LOCAL memrt_policy_record_t memrt__policy_record;
extern size_t memrt__policy_record_generation;

/// Cache of NumPy's variable, NULL: unknown; and cache of the scope variable. Only for the
/// functions of this header.
extern const memrt_variable_cache_t *memrt__handler_cache, *memrt__entries_cache;

static inline int memrt__policy_record_is_cached(const memrt_variable_cache_t *cache,
                                                 const PyThreadState *thread, const PyObject *value)
{
    return cache->value == value && cache->thread_id == thread->id &&
           cache->context_version == thread->context_ver;
}

/// Return whether the calling thread has a valid record, and store the recorded policy in
/// `*policy`: borrowed, NULL for the default policy.
static inline int memrt__policy_record_read(memrt_policy_t **policy)
{
    const memrt_policy_record_t *record = &memrt__policy_record;
    const PyThreadState *thread = record->thread;
    /* An attached state of this thread means that the thread holds the GIL. The address of a dead
       state may belong to a state of a subinterpreter later. */
    if (thread == NULL || memrt__interpreter_has_ended() ||
        thread != memrt__interpreter_thread_state() || thread->interp != memrt__main_interpreter) {
        return 0;
    }
    *policy = record->policy;
    return record->generation == memrt__policy_record_generation &&
           memrt__policy_record_is_cached(memrt__handler_cache, thread, record->handler) &&
           (record->entries == NULL ||
            memrt__policy_record_is_cached(memrt__entries_cache, thread, record->entries));
}

/// Record that a context with `handler` and the scope entries `entries` allocates from `policy`.
/// `entries` is NULL if the scope has no influence. The caller borrows `policy` from a handler of
/// memrt that outlives `entries`, or from `handler`.
void memrt__policy_record_write(PyObject *handler, PyObject *entries, memrt_policy_t *policy);

/// Drop the records of all threads.
void memrt__policy_record_drop(void);

/// Put NumPy's default handler in force explicitly if no handler is set in this context, because
/// CPython does not cache the default value of a variable. Without memory nothing changes.
void memrt__policy_record_prepare(void);

/// Find NumPy's context variable. Without memory, or where CPython's layout is unknown, no record
/// is ever valid. Call once, at import, after memrt__cpython_layout_setup(). `scopes` is the scope
/// variable, borrowed forever.
void memrt__policy_record_setup(PyObject *scopes);

#endif
