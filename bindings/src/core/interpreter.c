#include "core/interpreter.h"

#include <sched.h>

/// Set when interpreter shutdown begins. Nothing is scheduled after that: Py_AddPendingCall needs
/// an interpreter that still exists.
static atomic_int closing;
static atomic_int entering;   ///< number of threads that wait for the GIL in enter
static atomic_int scheduling; ///< number of threads inside memrt__interpreter_schedule()
atomic_int memrt__interpreter_is_gone;

#define YIELDS_MAX 10000 /* of a thread that ends Python, in each of its waits */
PyInterpreterState *memrt__main_interpreter;

void memrt__interpreter_setup(void)
{
    memrt__main_interpreter = PyInterpreterState_Main();
}

/// Work of memrt__interpreter_schedule().
static _Atomic(memrt_interpreter_work_fn) scheduled_work;

void memrt__interpreter_note_end(void)
{
    atomic_store_explicit(&memrt__interpreter_is_gone, 1, memory_order_release);
}

int memrt__holds_python(void)
{
    return memrt__attached_thread_state() != NULL;
}

int memrt__interpreter_is_finalizing(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

/// Return whether the calling thread, which does not hold the GIL of the main interpreter, may
/// belong to a subinterpreter. PyGILState_Ensure() would wait for ever, or attach the thread to the
/// subinterpreter.
static int may_be_in_subinterpreter(void)
{
    PyThreadState *mine = PyGILState_GetThisThreadState();
    if (mine != NULL && mine->interp != memrt__main_interpreter) {
        return 1;
    }
#if PY_VERSION_HEX >= 0x030C0000
    return memrt__interpreter_thread_state() != NULL;
#else /* the attached state may be the state of another thread */
    return PyInterpreterState_Next(PyInterpreterState_Head()) != NULL;
#endif
}

#define HELD (-1) /* state of a thread that held the GIL before */

int memrt__interpreter_enter(int *state)
{
    *state = HELD;
    if (memrt__interpreter_has_ended() || memrt__interpreter_is_finalizing()) {
        return 0;
    }
    if (memrt__holds_python()) {
        return 1;
    }
    atomic_fetch_add(&entering, 1); /* before the check, for memrt__interpreter_await_entries() */
    int may_enter = !atomic_load(&closing) && !may_be_in_subinterpreter();
    if (may_enter) {
        *state = (int)PyGILState_Ensure();
    }
    atomic_fetch_sub(&entering, 1);
    return may_enter;
}

void memrt__interpreter_await_entries(void)
{
    Py_BEGIN_ALLOW_THREADS;
    /* GCOV_EXCL_BR_START: only while a thread waits for the GIL */
    for (int i = 0; i < YIELDS_MAX && atomic_load(&entering) != 0; i++) {
        /* GCOV_EXCL_BR_STOP */
        sched_yield();
    }
    Py_END_ALLOW_THREADS;
}

void memrt__interpreter_leave(int state)
{
    if (state != HELD) {
        PyGILState_Release((PyGILState_STATE)state);
    }
}

void memrt__interpreter_set_work(memrt_interpreter_work_fn work)
{
    atomic_store(&scheduled_work, work);
}

/// Callback of Py_AddPendingCall.
static int run_work(void *unused)
{
    (void)unused;
    memrt_interpreter_work_fn work = atomic_load(&scheduled_work);
    work();
    return 0;
}

int memrt__interpreter_schedule_call(int (*call)(void *unused))
{
    atomic_fetch_add(&scheduling, 1);
    int done = atomic_load(&closing) || Py_AddPendingCall(call, NULL) == 0;
    atomic_fetch_sub(&scheduling, 1);
    return done;
}

/// A failure of Py_AddPendingCall is harmless: the next call of the module or the end of the
/// interpreter also drains.
void memrt__interpreter_schedule(void)
{
    (void)memrt__interpreter_schedule_call(run_work);
}

void memrt__interpreter_stop_scheduling(void)
{
    atomic_store(&closing, 1);
    /* GCOV_EXCL_BR_START: only while a thread is inside Py_AddPendingCall() */
    for (int i = 0; i < YIELDS_MAX && atomic_load(&scheduling) != 0; i++) {
        /* GCOV_EXCL_BR_STOP */
        sched_yield();
    }
}
