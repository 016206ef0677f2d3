/// Owners end with the GIL held. A release without the GIL pushes the owner on a lock-free stack,
/// which a thread with the GIL drains.

#include "core/owner.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "core/interpreter.h"
#include "core/policy_record.h"
#include "core/tracemalloc.h"
#include "support/errors.h"
#include "support/free_threading.h"
#include "support/free_list.h"

/// Owners whose MemInfo was freed without the GIL, newest first. Pushed with release order, and
/// taken all at once with acquire order. So the pusher's writes are visible, and no node can return
/// to the head (ABA).
static _Atomic(memrt_owner_t *) queued_owners;

static atomic_ullong queued_count, dropped_count;
static unsigned long long run_count; ///< shared

static memrt_free_list_t free_list;

static void recycle_owner(memrt_owner_t *owner)
{
    if (!memrt__free_list_put(&free_list, owner)) {
        free(owner);
    }
}

/// Drop the references of an owner and recycle the struct.
static void destroy_owner(memrt_owner_t *owner)
{
    Py_XDECREF(owner->object);
    Py_XDECREF(owner->dtor);
    Py_XDECREF(owner->arguments);
    recycle_owner(owner);
}

/// Run an owner whose end may run other code, with the pending exception saved.
static void run_owner_callbacks(memrt_owner_t *owner)
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
    destroy_owner(owner);
    memrt__pending_restore(&pending);
}

/// Return whether a reference to `object` is not the last, so that dropping the reference runs no
/// code. Without a GIL other threads may drop the other references first.
static int has_other_references(PyObject *object)
{
#ifdef Py_GIL_DISABLED
    (void)object;
    return 0;
#else
    return Py_REFCNT(object) > 1;
#endif
}

/// Run an owner with the GIL held.
static void run_owner(memrt_owner_t *owner)
{
    int is_callback = owner->dtor != NULL || owner->give_back != NULL;
    if (!is_callback && owner->object != NULL && has_other_references(owner->object)) {
        Py_DECREF(owner->object); /* other references remain, so no code runs */
        recycle_owner(owner);
    } else {
        run_owner_callbacks(owner);
    }
    MEMRT_SHARED_ADD(run_count, 1);
}

/// Take all queued owners, as a list with the oldest first.
static memrt_owner_t *dequeue_owners(void)
{
    memrt_owner_t *stack = atomic_exchange_explicit(&queued_owners, NULL, memory_order_acquire);
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
    memrt__tracemalloc_drain();
    if (atomic_load_explicit(&queued_owners, memory_order_relaxed) == NULL ||
        !memrt__holds_python()) {
        return;
    }
    memrt_owner_t *owner = dequeue_owners();
    while (owner != NULL) {
        memrt_owner_t *next = owner->next;
        run_owner(owner);
        owner = next;
    }
}

void memrt__owner_drop(memrt_owner_t *owner)
{
    free(owner); /* the Python objects are leaked on purpose */
    atomic_fetch_add_explicit(&dropped_count, 1, memory_order_relaxed);
}

static void drop_queued_owners(void)
{
    memrt_owner_t *owner = dequeue_owners();
    while (owner != NULL) {
        memrt_owner_t *next = owner->next;
        memrt__owner_drop(owner);
        owner = next;
    }
}

/// Queue an owner for a thread with the GIL. Threads: without the GIL; never waits for the GIL.
static void enqueue_owner(memrt_owner_t *owner)
{
    memrt_owner_t *head = atomic_load_explicit(&queued_owners, memory_order_relaxed);
    do {
        owner->next = head;
        /* GCOV_EXCL_BR_START: fails only if two threads push at the same step */
    } while (!atomic_compare_exchange_weak_explicit(&queued_owners, &head, owner,
                                                    memory_order_release, memory_order_relaxed));
    /* GCOV_EXCL_BR_STOP */
    atomic_fetch_add_explicit(&queued_count, 1, memory_order_relaxed);
    if (head == NULL) {
        memrt__interpreter_schedule(); /* a later pusher relies on the call that the first
                                          pusher scheduled */
    }
    /* Pairs with the fence of handle_interpreter_end: either drop_queued_owners there sees this
       owner, or the call below sees the end. */
    atomic_thread_fence(memory_order_seq_cst);
    /* GCOV_EXCL_BR_START: only if Python ended since the push */
    if (memrt__interpreter_has_ended()) {
        /* GCOV_EXCL_BR_STOP */
        drop_queued_owners();
    }
}

void memrt__owner_dtor(void *data, size_t size, void *info)
{
    (void)data;
    (void)size;
    if (memrt__holds_python()) {
        run_owner(info);
    } else if (memrt__interpreter_has_ended()) {
        memrt__owner_drop(info);
    } else {
        enqueue_owner(info);
    }
}

static PyObject *build_arguments(uintptr_t data, size_t size)
{
    return Py_BuildValue("(NN)", PyLong_FromSize_t((size_t)data), PyLong_FromSize_t(size));
}

static memrt_owner_t *allocate_owner(void)
{
    memrt_owner_t *recycled = memrt__free_list_take(&free_list);
    memrt_owner_t *owner = recycled != NULL ? recycled : malloc(sizeof(*owner));
    if (owner == NULL) {
        PyErr_NoMemory();
    }
    return owner;
}

memrt_owner_t *memrt__owner_new(PyObject *object, PyObject *dtor, uintptr_t data, size_t size)
{
    PyObject *arguments = NULL;
    if (dtor != NULL && (arguments = build_arguments(data, size)) == NULL) {
        return NULL;
    }
    memrt_owner_t *owner = allocate_owner();
    if (owner == NULL) {
        Py_XDECREF(arguments);
        return NULL;
    }
    Py_XINCREF(object);
    Py_XINCREF(dtor);
    *owner = (memrt_owner_t){.object = object, .dtor = dtor, .arguments = arguments};
    return owner;
}

memrt_owner_t *memrt__owner_of_loan(void (*give_back)(void *loan), void *loan, PyObject *object)
{
    memrt_owner_t *owner = allocate_owner();
    if (owner != NULL) {
        *owner =
            (memrt_owner_t){.object = Py_XNewRef(object), .give_back = give_back, .loan = loan};
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
    destroy_owner(owner);
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

static PyObject *count_owners(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    memrt__owner_drain();
    return Py_BuildValue("{sKsKsK}", "queued", atomic_load(&queued_count), "run",
                         MEMRT_SHARED_READ(run_count), "dropped", atomic_load(&dropped_count));
}

/// Close the queue, when interpreter shutdown begins.
static PyObject *close_queue(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    memrt__interpreter_stop_scheduling();
    memrt__interpreter_await_entries();
    memrt__owner_drain();
    Py_RETURN_NONE;
}

/// Drop queued owners, and owners that end later, when the interpreter is deleted.
static void handle_interpreter_end(void)
{
    memrt__interpreter_note_end();
    memrt__policy_record_drop();
    atomic_thread_fence(memory_order_seq_cst);
    drop_queued_owners();
}

/// Destructor of a capsule in the dict of the interpreter.
static void handle_capsule_end(PyObject *capsule)
{
    (void)capsule;
    handle_interpreter_end();
}

/// Notice the end of the interpreter by a capsule in the dict of the interpreter. The dict is
/// cleared late in finalization, after all modules. -1 with an exception.
static int register_end_capsule(void)
{
    static const char name[] = "memrt.end";
    PyObject *dict = PyInterpreterState_GetDict(PyInterpreterState_Main()); /* borrowed */
    PyObject *capsule = PyCapsule_New((void *)(uintptr_t)name, name, handle_capsule_end);
    int result = -1;
    if (capsule != NULL && dict != NULL) {
        result = PyDict_SetItemString(dict, name, capsule);
    } else if (capsule != NULL) {
        PyErr_NoMemory();
    }
    Py_XDECREF(capsule);
    return result;
}

/// Register for the end of the interpreter. Py_AtExit has 32 slots; the capsule replaces a missing
/// slot. -1 with an exception.
static int register_end_handler(void)
{
    return Py_AtExit(handle_interpreter_end) == 0 ? 0 : register_end_capsule();
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
    if (register_end_handler() < 0) {
        return -1;
    }
    done = 1;
    return 0;
}

PyMethodDef memrt__owner_methods[] = {
    {"owners", count_owners, METH_NOARGS,
     "owners() -> dict\n\n"
     "Return the number of Python owners of memory that were 'queued' for a thread with the GIL,\n"
     "that were 'run', and that were 'dropped' because Python had ended."},
    {"_close_queue", close_queue, METH_NOARGS,
     "Close the queue of owners. Registered with atexit."},
    {NULL, NULL, 0, NULL},
};
