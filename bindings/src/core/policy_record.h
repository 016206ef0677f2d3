#ifndef MEMRT_BINDINGS_CORE_POLICY_RECORD_H
#define MEMRT_BINDINGS_CORE_POLICY_RECORD_H

#include "core/cpython_layout.h"
#include "core/interpreter.h"
#include "support/binding.h"

#include <stdatomic.h>

/// Records of the policies that contexts allocate from, so that allocations of compiled code skip
/// the lookup.
///
/// The variables of a context are one immutable mapping, so a mapping decides the policy: the
/// mapping holds NumPy's handler and the scope entries. A record has a mapping and its policy. The
/// records serve all threads, and each thread remembers the record used last. A record is valid for
/// a thread whose context has the mapping. So ContextVar.set(), Context.run(), tasks, greenlets and
/// other threads need no further check.
///
/// A record borrows the mapping and the policy:
/// - A weak reference tells that the mapping died, because another mapping may get its address.
/// - When a handler of memrt dies, all records are dropped. The scope entries of a mapping cache
///   handlers, and the cache may lose a handler while the mapping lives.
///
/// Threads: memrt__policy_record_read() and memrt__policy_record_forget() need no GIL; without the
/// GIL no record is valid. All other functions need the GIL of the main interpreter.

typedef struct memrt_policy_record {
    PyObject *const *variables; ///< referent of `reference`; or a mapping that no context has
    PyObject *reference;        ///< weak reference to the mapping, owned; NULL: never used
    memrt_policy_t *policy;     ///< borrowed
} memrt_policy_record_t;

/// Record that a thread used last.
typedef struct memrt_last_policy {
    const PyThreadState *thread; ///< attached state of the thread at the last lookup; never NULL
    unsigned long thread_id;     ///< member of the state, different for each thread
    const memrt_policy_record_t *record;
} memrt_last_policy_t;

/// Only for the functions of this header.
extern MEMRT_HIDDEN MEMRT_THREAD_LOCAL memrt_last_policy_t memrt__last_policy;

/// Return whether the calling thread holds the GIL with the thread state of its last lookup.
static inline int memrt__policy_record_is_attached(const PyThreadState *thread)
{
#if PY_VERSION_HEX < 0x030C0000
    /* The address of a dead state may belong to the state of another thread later. */
    return __atomic_load_n(memrt__attached_state, __ATOMIC_RELAXED) == (uintptr_t)thread &&
           thread->thread_id == memrt__last_policy.thread_id;
#else
    return memrt__interpreter_thread_state() == thread;
#endif
}

/// Return whether the record that the calling thread used last is valid, and store its policy in
/// `*policy`, borrowed.
///
/// The address of a dead thread state may belong to a state of a subinterpreter later. The record
/// is not valid for the state, because mappings with a handler or scope belong to one interpreter.
static inline int memrt__policy_record_read(memrt_policy_t **policy)
{
    const PyThreadState *thread = memrt__last_policy.thread;
    if (!memrt__policy_record_is_attached(thread) || thread->context == NULL) {
        return 0;
    }
    const memrt_policy_record_t *record = memrt__last_policy.record;
    *policy = record->policy;
    return ((const memrt_context_t *)thread->context)->variables == *record->variables;
}

/// Whether any context ever had a policy other than the default policy, or a scope. Never cleared:
/// contexts are copied, so the end of the last copy is unknown. Only for the functions below.
extern MEMRT_HIDDEN atomic_bool memrt__policy_was_chosen;

/// Note that a context gets a policy other than the default policy, or a scope.
void memrt__policy_record_note_choice(void);

/// Return whether every context has the default policy and no context is in a scope. Allocations of
/// compiled code then skip the lookup. Needs no GIL.
static inline int memrt__policy_is_default_everywhere(void)
{
    return !atomic_load_explicit(&memrt__policy_was_chosen, memory_order_relaxed);
}

/// Return the mapping of the current context, as a new reference. NULL, without an exception, where
/// the layout of contexts is unknown, without memory, and on threads that
/// memrt__attached_thread_state() does not know.
PyObject *memrt__policy_record_variables(void);

/// Return whether a record of `variables` exists, and store its policy in `*policy`, borrowed.
int memrt__policy_record_find(PyObject *variables, memrt_policy_t **policy);

/// Record that a context with the mapping `variables` allocates from `policy`. No effect if the
/// current context has another mapping, because the lookup may have run Python code. The caller
/// holds the handler that holds `policy`.
void memrt__policy_record_write(PyObject *variables, memrt_policy_t *policy);

/// Forget the record that the calling thread used last: no record is valid until the next lookup.
/// Needs no GIL.
void memrt__policy_record_forget(void);

/// Drop all records. Also called when the interpreter is deleted.
void memrt__policy_record_drop(void);

#endif
