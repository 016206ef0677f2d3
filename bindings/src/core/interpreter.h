#ifndef MEMRT_BINDINGS_CORE_INTERPRETER_H
#define MEMRT_BINDINGS_CORE_INTERPRETER_H

#include "support/binding.h"

/// State of the main interpreter for any thread: whether the thread holds the GIL, whether
/// the interpreter has ended, and work to run later with the GIL.
///
/// Order: set_work at import, then schedule; stop_scheduling when shutdown begins; note_end when
/// the interpreter is deleted. Threads: any thread, with or without the GIL, may call holds_python,
/// has_ended and schedule. The three functions never wait for the GIL.

/// Return whether the calling thread holds the GIL of the main interpreter and may run Python code
/// now. Returns 0 in subinterpreters, and on all threads after memrt__interpreter_note_end().
///
/// PyGILState_Check() cannot replace the function: PyGILState_Check() returns 1 on every thread
/// after a subinterpreter has existed. During finalization, the finalizing thread still gets 1,
/// although the module globals may already be destroyed.
int memrt__holds_python(void);

/// Return whether the interpreter that imported the module is deleted. Python code, such as the
/// destructors of owners in core/owner.h, cannot run afterwards.
int memrt__interpreter_has_ended(void);

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

/// Turn later calls of memrt__interpreter_schedule() into no-ops. Call when interpreter shutdown
/// begins, because Py_AddPendingCall() needs an interpreter that still exists.
///
/// Waits until no thread is inside memrt__interpreter_schedule(), for at most 10,000 yields of the
/// processor. In a forked child, the count of such threads may include a thread that exists in the
/// parent alone.
void memrt__interpreter_stop_scheduling(void);

#endif
