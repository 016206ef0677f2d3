#include "core/interpreter.h"

#include <sched.h>

/// Set when interpreter shutdown begins. Nothing is scheduled after that: Py_AddPendingCall needs
/// an interpreter that still exists.
static atomic_int closing;
static atomic_int scheduling; ///< number of threads inside memrt__interpreter_schedule()
atomic_int memrt__interpreter_is_gone;
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

#define YIELDS_MAX 10000

void memrt__interpreter_stop_scheduling(void)
{
    atomic_store(&closing, 1);
    /* GCOV_EXCL_BR_START: only while a thread is inside Py_AddPendingCall() */
    for (int i = 0; i < YIELDS_MAX && atomic_load(&scheduling) != 0; i++) {
        /* GCOV_EXCL_BR_STOP */
        sched_yield();
    }
}
