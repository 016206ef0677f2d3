#ifndef MEMRT_BINDINGS_CORE_INTERPRETER_H
#define MEMRT_BINDINGS_CORE_INTERPRETER_H

#include "support/binding.h"

/// State of the main interpreter for any thread: whether the thread holds the GIL, whether
/// the interpreter has ended, and work to run later with the GIL.

/// Return whether the calling thread holds the GIL of the main interpreter and may run Python code
/// now. PyGILState_Check() is no substitute: the function returns 1 on every thread once a
/// subinterpreter existed. During finalization the answer is still yes for the finalizing thread,
/// and the module globals are being destroyed.
int memrt__holds_python(void);

/// Return whether the Python that imported the module was finalized. Owners cannot run afterwards.
int memrt__interpreter_has_ended(void);

/// Note that the interpreter is deleted. Call once, at the end of the interpreter.
void memrt__interpreter_note_end(void);

/// Work for a thread with the GIL.
typedef void (*memrt_interpreter_work_fn)(void);

/// Set the work of memrt__interpreter_schedule(). Call once, at import, before the first use of
/// memrt__interpreter_schedule().
void memrt__interpreter_set_work(memrt_interpreter_work_fn work);

/// Schedule a call of the work on the main thread. Threads: any, with or without the GIL; never
/// blocks on the GIL.
void memrt__interpreter_schedule(void);

/// Schedule nothing from now on, when interpreter shutdown begins. Waits for threads on their way
/// into Py_AddPendingCall. The wait is bounded: in a forked child the count may include a thread
/// without a counterpart in the child.
void memrt__interpreter_stop_scheduling(void);

#endif
