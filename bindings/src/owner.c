#include "owner.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "errors.h"
#include "spares.h"

/// Owners whose MemInfo died where the GIL was not held, newest first. Pushed with release, taken
/// all at once with acquire, so that what the pusher wrote is seen and no node can come back (ABA).
static _Atomic(memrt_owner_t *) waiting;

static atomic_ullong queued_count, dropped_count;
static unsigned long long run_count; ///< under the GIL

static memrt_spares_t spares;

/// Set when interpreter shutdown begins: from then on nothing is scheduled, because
/// Py_AddPendingCall has no interpreter to add to once it is deleted.
static atomic_int closing;
static atomic_int scheduling; ///< threads inside schedule()
static atomic_int gone;       ///< the interpreter is deleted

#if PY_VERSION_HEX >= 0x030D0000
#define attached_thread_state() PyThreadState_GetUnchecked()
#else
#define attached_thread_state() _PyThreadState_UncheckedGet()
#endif

int memrt__holds_python(void)
{
    if (atomic_load_explicit(&gone, memory_order_acquire)) {
        return 0;
    }
    PyThreadState *mine = PyGILState_GetThisThreadState();
    return mine != NULL && mine == attached_thread_state() &&
           PyThreadState_GetInterpreter(mine) == PyInterpreterState_Main();
}

static void keep_spare(memrt_owner_t *owner)
{
    if (!memrt__spares_put(&spares, owner)) {
        free(owner);
    }
}

static void forget(memrt_owner_t *owner)
{
    Py_XDECREF(owner->object);
    Py_XDECREF(owner->dtor);
    Py_XDECREF(owner->arguments);
    keep_spare(owner);
}

/// For an owner whose end may run other code.
static void run_aside(memrt_owner_t *owner)
{
    memrt_pending_t pending;
    memrt__pending_save(&pending);
    if (owner->dtor != NULL) {
        PyObject *result = PyObject_CallObject(owner->dtor, owner->arguments);
        if (result == NULL) {
            PyErr_WriteUnraisable(owner->dtor);
        }
        Py_XDECREF(result);
    }
    if (owner->give_back != NULL) {
        owner->give_back(owner->loan);
    }
    forget(owner);
    memrt__pending_restore(&pending);
}

static void run(memrt_owner_t *owner)
{
    if (owner->dtor == NULL && owner->object != NULL && Py_REFCNT(owner->object) > 1) {
        Py_DECREF(owner->object); /* others hold it: nothing happens */
        keep_spare(owner);
    } else {
        run_aside(owner);
    }
    run_count++;
}

static memrt_owner_t *take_oldest_first(void)
{
    memrt_owner_t *stack = atomic_exchange_explicit(&waiting, NULL, memory_order_acquire);
    memrt_owner_t *list = NULL;
    while (stack != NULL) {
        memrt_owner_t *next = stack->next;
        stack->next = list;
        list = stack;
        stack = next;
    }
    return list;
}

void memrt__owner_drain(void)
{
    if (atomic_load_explicit(&waiting, memory_order_relaxed) == NULL || !memrt__holds_python()) {
        return;
    }
    memrt_owner_t *owner = take_oldest_first();
    while (owner != NULL) {
        memrt_owner_t *next = owner->next;
        run(owner);
        owner = next;
    }
}

static int drain_callback(void *unused)
{
    (void)unused;
    memrt__owner_drain();
    return 0;
}

/// Ask the main thread to drain soon. That this may fail is fine: the next call of the module or
/// the end of the interpreter drains as well.
static void schedule(void)
{
    atomic_fetch_add(&scheduling, 1);
    if (!atomic_load(&closing)) {
        (void)Py_AddPendingCall(drain_callback, NULL);
    }
    atomic_fetch_sub(&scheduling, 1);
}

static void drop(memrt_owner_t *owner)
{
    free(owner); /* its Python objects went with the interpreter */
    atomic_fetch_add_explicit(&dropped_count, 1, memory_order_relaxed);
}

static void drop_waiting(void)
{
    memrt_owner_t *owner = take_oldest_first();
    while (owner != NULL) {
        memrt_owner_t *next = owner->next;
        drop(owner);
        owner = next;
    }
}

static void enqueue(memrt_owner_t *owner)
{
    memrt_owner_t *head = atomic_load_explicit(&waiting, memory_order_relaxed);
    do {
        owner->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&waiting, &head, owner, memory_order_release,
                                                    memory_order_relaxed));
    atomic_fetch_add_explicit(&queued_count, 1, memory_order_relaxed);
    if (head == NULL) {
        schedule(); /* whoever found others waiting relies on the call of the first */
    }
    /* Pairs with the fence of interpreter_is_gone: it sees this owner, or this sees `gone`. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&gone, memory_order_acquire)) {
        drop_waiting();
    }
}

void memrt__owner_dtor(void *data, size_t size, void *info)
{
    (void)data;
    (void)size;
    if (memrt__holds_python()) {
        run(info);
    } else if (atomic_load_explicit(&gone, memory_order_acquire)) {
        drop(info);
    } else {
        enqueue(info);
    }
}

static PyObject *arguments_of(uintptr_t data, size_t size)
{
    return Py_BuildValue("(NN)", PyLong_FromSize_t((size_t)data), PyLong_FromSize_t(size));
}

static memrt_owner_t *new_owner(void)
{
    memrt_owner_t *spare = memrt__spares_take(&spares);
    memrt_owner_t *owner = spare != NULL ? spare : malloc(sizeof(*owner));
    if (owner == NULL) {
        PyErr_NoMemory();
    }
    return owner;
}

memrt_owner_t *memrt__owner_new(PyObject *object, PyObject *dtor, uintptr_t data, size_t size)
{
    PyObject *arguments = NULL;
    if (dtor != NULL && (arguments = arguments_of(data, size)) == NULL) {
        return NULL;
    }
    memrt_owner_t *owner = new_owner();
    if (owner == NULL) {
        Py_XDECREF(arguments);
        return NULL;
    }
    Py_XINCREF(object);
    Py_XINCREF(dtor);
    *owner = (memrt_owner_t){.object = object, .dtor = dtor, .arguments = arguments};
    return owner;
}

memrt_owner_t *memrt__owner_of_loan(void (*give_back)(void *loan), void *loan)
{
    memrt_owner_t *owner = new_owner();
    if (owner != NULL) {
        *owner = (memrt_owner_t){.give_back = give_back, .loan = loan};
    }
    return owner;
}

void *memrt__owner_loan(const memrt_meminfo_t *mi, void (*give_back)(void *loan))
{
    const memrt_owner_t *owner = memrt__owner_of(mi);
    return owner != NULL && owner->give_back == give_back ? owner->loan : NULL;
}

void memrt__owner_discard(memrt_owner_t *owner)
{
    forget(owner);
}

memrt_owner_t *memrt__owner_of(const memrt_meminfo_t *mi)
{
    return mi->dtor == memrt__owner_dtor ? mi->dtor_info : NULL;
}

int memrt__owner_visit(memrt_owner_t *owner, visitproc visit, void *arg)
{
    Py_VISIT(owner->object);
    Py_VISIT(owner->dtor);
    Py_VISIT(owner->arguments);
    return 0;
}

static PyObject *owners(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    memrt__owner_drain();
    return Py_BuildValue("{sKsKsK}", "queued", atomic_load(&queued_count), "run", run_count,
                         "dropped", atomic_load(&dropped_count));
}

/// Runs when interpreter shutdown begins. Waits for threads on their way into Py_AddPendingCall;
/// not forever, as in a forked child the count may be that of a thread that does not exist there.
static PyObject *close_queue(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    atomic_store(&closing, 1);
    for (int i = 0; i < 10000 && atomic_load(&scheduling) != 0; i++) {
        sched_yield();
    }
    memrt__owner_drain();
    Py_RETURN_NONE;
}

static void interpreter_is_gone(void)
{
    atomic_store_explicit(&gone, 1, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    drop_waiting();
}

int memrt__owner_has_ended(void)
{
    return atomic_load_explicit(&gone, memory_order_acquire);
}

static int register_atexit(PyObject *module)
{
    PyObject *atexit = PyImport_ImportModule("atexit");
    if (atexit == NULL) {
        return -1;
    }
    PyObject *function = PyObject_GetAttrString(module, "_close_queue");
    PyObject *result =
        function != NULL ? PyObject_CallMethod(atexit, "register", "O", function) : NULL;
    Py_XDECREF(result);
    Py_XDECREF(function);
    Py_DECREF(atexit);
    return result != NULL ? 0 : -1;
}

int memrt__owner_setup(PyObject *module)
{
    static int done;
    if (done) {
        return 0;
    }
    if (register_atexit(module) < 0) {
        return -1;
    }
    /* Without a free place (there are 32) nothing is lost but the count of what was dropped: no
       thread has a state of its own to be found any more. */
    (void)Py_AtExit(interpreter_is_gone);
    done = 1;
    return 0;
}

PyMethodDef memrt__owner_methods[] = {
    {"owners", owners, METH_NOARGS,
     "owners() -> dict\n\n"
     "How many Python owners of memory had to wait for a thread with the GIL ('queued'), how many\n"
     "were run, and how many were 'dropped' because Python had ended."},
    {"_close_queue", close_queue, METH_NOARGS, "Registered with atexit."},
    {NULL, NULL, 0, NULL},
};
