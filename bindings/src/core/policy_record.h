#ifndef MEMRT_BINDINGS_CORE_POLICY_RECORD_H
#define MEMRT_BINDINGS_CORE_POLICY_RECORD_H

#include "core/cpython_layout.h"
#include "support/binding.h"

/// Record of the last lookup of the current policy, so that allocations of compiled code skip the
/// lookup while the context stays the same.
///
/// CPython caches the value of a context variable in the variable, and checks the id of the thread
/// state and the version of its context. The record is valid while the caches of NumPy's variable
/// and of the scope variable hold the recorded values for the calling thread. Every change of
/// context therefore invalidates the record: ContextVar.set(), Context.run(), tasks, greenlets, and
/// other threads.
///
/// The record borrows all objects. Values compare by address, so the record is dropped before a
/// recorded address may be reused: when a handler of memrt dies, and before a context gets new
/// scope entries. Other handlers are never recorded, except NumPy's default handler, which lives
/// until the process ends.
///
/// Threads: every function needs the GIL of the main interpreter.

typedef struct memrt_policy_record {
    PyObject *handler; ///< value of NumPy's variable; NULL: no record
    PyObject *entries; ///< value of the scope variable; NULL: any
    memrt_policy_t *policy;
    const memrt_variable_cache_t *handler_cache; ///< cache of NumPy's variable; NULL: unknown
    const memrt_variable_cache_t *entries_cache; ///< cache of the scope variable
} memrt_policy_record_t;

/// The record. Only for the functions of this header.
extern memrt_policy_record_t memrt__policy_record;

static inline int memrt__policy_record_is_cached(const memrt_variable_cache_t *cache,
                                                 const PyThreadState *thread, const PyObject *value)
{
    return cache->value == value && cache->thread_id == thread->id &&
           cache->context_version == thread->context_ver;
}

/// Return whether the record is valid for `thread`, the attached thread state, and store the
/// recorded policy in `*policy`: borrowed, NULL for the default policy.
static inline int memrt__policy_record_read(const PyThreadState *thread, memrt_policy_t **policy)
{
    const memrt_policy_record_t *record = &memrt__policy_record;
    *policy = record->policy;
    return record->handler != NULL &&
           memrt__policy_record_is_cached(record->handler_cache, thread, record->handler) &&
           (record->entries == NULL ||
            memrt__policy_record_is_cached(record->entries_cache, thread, record->entries));
}

/// Record that a context with `handler` and the scope entries `entries` allocates from `policy`.
/// `entries` is NULL if the scope has no influence. The caller borrows `policy` from a handler of
/// memrt that outlives `entries`, or from `handler`.
void memrt__policy_record_write(PyObject *handler, PyObject *entries, memrt_policy_t *policy);

/// Drop the record.
void memrt__policy_record_drop(void);

/// Put NumPy's default handler in force explicitly if no handler is set in this context, because
/// CPython does not cache the default value of a variable. Without memory nothing changes.
void memrt__policy_record_prepare(void);

/// Find NumPy's context variable. Without memory, or where CPython's layout is unknown, no record
/// is ever valid. Call once, at import, after memrt__cpython_layout_setup(). `scopes` is the scope
/// variable, borrowed forever.
void memrt__policy_record_setup(PyObject *scopes);

#endif
