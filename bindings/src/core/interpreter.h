#ifndef MEMRT_BINDINGS_CORE_INTERPRETER_H
#define MEMRT_BINDINGS_CORE_INTERPRETER_H

#include "support/binding.h"

#include <stdatomic.h>

/// State of the main interpreter for any thread: whether the thread holds the GIL, whether
/// the interpreter has ended, and work to run later with the GIL.
///
/// Order: setup and set_work at import, then schedule; stop_scheduling when shutdown begins;
/// note_end when the interpreter is deleted. Threads: any thread, with or without the GIL, may call
/// holds_python, has_ended, schedule and enter. Only enter waits for the GIL.

/// Set by memrt__interpreter_note_end(). Only for memrt__interpreter_has_ended().
extern atomic_int memrt__interpreter_is_gone;

/// Main interpreter, which imported the module; NULL before memrt__interpreter_setup(). Only for
/// memrt__attached_thread_state().
extern PyInterpreterState *memrt__main_interpreter;

/// Find the main interpreter. Call once, at import, before any other function of this header.
void memrt__interpreter_setup(void);

/// Return whether the interpreter that imported the module is deleted. Python code, such as the
/// destructors of owners in core/owner.h, cannot run afterwards.
static inline int memrt__interpreter_has_ended(void)
{
    return atomic_load_explicit(&memrt__interpreter_is_gone, memory_order_acquire);
}

/// Return the thread state that is attached to the calling thread; before 3.12, to whichever thread
/// holds the GIL. May be NULL.
static inline PyThreadState *memrt__interpreter_thread_state(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked();
#else
    return _PyThreadState_UncheckedGet();
#endif
}

/// Return the thread state of the calling thread if memrt__holds_python(), otherwise NULL.
static inline PyThreadState *memrt__attached_thread_state(void)
{
    if (memrt__interpreter_has_ended()) {
        return NULL;
    }
    /* Before 3.12 the attached state is the state of whichever thread holds the GIL. From 3.12
       on, a state that PyGILState_Ensure() would not find does not count, since tracemalloc
       calls PyGILState_Ensure(). */
    PyThreadState *mine = PyGILState_GetThisThreadState();
    return mine != NULL && mine == memrt__interpreter_thread_state() &&
                   mine->interp == memrt__main_interpreter
               ? mine
               : NULL;
}

/// Return whether the calling thread holds the GIL of the main interpreter and may run Python code
/// now. Returns 0 in subinterpreters, and on all threads after memrt__interpreter_note_end().
///
/// PyGILState_Check() cannot replace the function: PyGILState_Check() returns 1 on every thread
/// after a subinterpreter has existed. During finalization, the finalizing thread still gets 1,
/// although the module globals may already be destroyed.
int memrt__holds_python(void);

/// Return whether finalization of Python began. Modules may lack their globals from then on.
int memrt__interpreter_is_finalizing(void);

/// Let the calling thread run Python code in the main interpreter. A thread without the GIL waits
/// for the GIL. `*state` is for memrt__interpreter_leave().
///
/// Failure: returns 0 where Python code must not run: during finalization and afterwards; without
/// the GIL, once shutdown begins; and on threads of a subinterpreter. Before Python 3.12, also on
/// all threads without the GIL while a subinterpreter exists.
int memrt__interpreter_enter(int *state);

/// After memrt__interpreter_stop_scheduling(), let threads that wait in memrt__interpreter_enter()
/// get the GIL, for at most 10,000 yields of the processor. A thread that waits for the GIL while
/// Python ends would hang. Needs the GIL, which the function releases meanwhile.
void memrt__interpreter_await_entries(void);

/// Undo a successful memrt__interpreter_enter().
void memrt__interpreter_leave(int state);

/// Record the end of the interpreter for memrt__interpreter_has_ended(). Call once, when the
/// interpreter is deleted.
void memrt__interpreter_note_end(void);

/// Work for a thread with the GIL.
typedef void (*memrt_interpreter_work_fn)(void);

/// Set the work of memrt__interpreter_schedule(). Call once, at import, before the first use of
/// memrt__interpreter_schedule().
void memrt__interpreter_set_work(memrt_interpreter_work_fn work);

/// Schedule a call of the work on the main thread, with Py_AddPendingCall(). Threads: any, with or
/// without the GIL; never blocks on the GIL.
///
/// Failure: none is reported. The call may never happen, so the caller must run the work on another
/// occasion as well.
void memrt__interpreter_schedule(void);

/// Schedule a call on the main thread, with Py_AddPendingCall(). Threads: any, with or without the
/// GIL; never blocks on the GIL. Returns 1 if the call is scheduled, and after shutdown began, when
/// no call is made any more. Returns 0 while the queue of calls is full.
int memrt__interpreter_schedule_call(int (*call)(void *unused));

/// Turn later calls of both functions into no-ops. Call when interpreter shutdown begins, because
/// Py_AddPendingCall() needs an interpreter that still exists.
///
/// Waits until no thread is inside one of the functions, for at most 10,000 yields of the
/// processor. In a forked child, the count of such threads may include a thread that exists in the
/// parent alone.
void memrt__interpreter_stop_scheduling(void);

#endif
