#include "callbacks/block_hooks.h"

#include <pthread.h>
#include <unistd.h>

#include "callbacks/event_queue.h"
#include "core/current_policy.h"
#include "core/interpreter.h"
#include "core/mem_handler.h"
#include "support/arguments.h"
#include "support/errors.h"

/// State of a slot, in this order. Only the taker changes CLOSED to FREE.
typedef enum state {
    FREE,
    OPENING, ///< a thread adds the C hook
    OPEN,
    CLOSING, ///< a thread removes the C hook
    CLOSED,  ///< no new events; the slot becomes free after the delivery of the last event
} state_t;

typedef struct hook {
    atomic_int state;        ///< state_t
    _Atomic uint64_t number; ///< fixed from OPENING on; unique; the index plus a multiple of SLOTS
    uint64_t id;             ///< fixed from OPEN on; id of the C hook
    PyObject *object;        ///< fixed from OPEN to CLOSED; owned
    atomic_ulong taker;      ///< thread that takes events and calls the object; 0: none
    bool discards;           ///< of the taker: the object closed the hook, and is called no more
    atomic_ullong dropped;   ///< events that the full queue refused
    memrt_event_queue_t queue;
} hook_t;

#define SLOTS MEMRT_HOOKS_MAX
#define PAUSE_US 200 /* between two attempts to deliver */

static hook_t hooks[SLOTS];
static atomic_int scheduled; ///< a pending call delivers the events of all hooks

/* The main thread delivers for at most half of its time, so that it goes on beside threads that
   allocate without a pause. */
#define REST_MAX 100000000u               /* ns */
static atomic_uint_least64_t end_of_rest; ///< time from which a pending call delivers

/// Number of objects that the thread calls, one inside of the other. Allocations of these calls
/// have no events: each event would otherwise cause the next one.
static MEMRT_THREAD_LOCAL int is_delivering;

static int deliver_pending(void *unused);

/// Have events delivered by a pending call. While the queue of pending calls is full, the next
/// event schedules the call.
static void schedule_delivery(void)
{
    if (atomic_exchange(&scheduled, 1) == 0 && !memrt__interpreter_schedule_call(deliver_pending)) {
        atomic_store(&scheduled, 0);
    }
}

/// Call of the C hook: on any thread, with or without the GIL. `context` is the number of the hook.
static void note_event(const memrt_hook_event_t *event, void *context)
{
    uint64_t number = (uintptr_t)context;
    hook_t *hook = &hooks[number % SLOTS];
    if (event->type == MEMRT_HOOK_FAILURE && is_delivering) {
        return;
    }
    if (!memrt__event_queue_put(&hook->queue, event, number)) {
        atomic_fetch_add_explicit(&hook->dropped, 1, memory_order_relaxed);
    }
    schedule_delivery();
}

static int wants_block(const memrt_hook_event_t *event, void *context)
{
    (void)event;
    (void)context;
    return !is_delivering;
}

static const char *const type_names[] = {
    [MEMRT_HOOK_ALLOCATE] = "allocate",
    [MEMRT_HOOK_RESIZE] = "resize",
    [MEMRT_HOOK_FREE] = "free",
    [MEMRT_HOOK_FAILURE] = "failure",
};

/// Call an object with the fields of an event. Errors go to sys.unraisablehook.
static void call_object(PyObject *object, const memrt_queued_event_t *event)
{
    PyObject *result = PyObject_CallFunction(
        object, "sKdNkKKdKKK", type_names[event->type], (unsigned long long)event->size,
        event->weight, memrt__text(event->policy), (unsigned long)event->scope,
        (unsigned long long)event->address, (unsigned long long)event->thread,
        (double)event->time / 1e9, (unsigned long long)event->site,
        (unsigned long long)event->old_address, (unsigned long long)event->old_size);
    if (result == NULL) {
        PyErr_WriteUnraisable(object);
    }
    Py_XDECREF(result);
}

/// Take events and call the object. Of an open hook, take at most the events that exist at the
/// begin, so that other threads cannot keep the caller here.
static void call_for_events(hook_t *hook, bool is_closed)
{
    size_t rest = is_closed ? SIZE_MAX : memrt__event_queue_count(&hook->queue);
    memrt_queued_event_t event;
    is_delivering++;
    for (; rest != 0 && memrt__event_queue_take(&hook->queue, &event); rest--) {
        if (event.type != 0 && event.hook == hook->number && !hook->discards) {
            call_object(hook->object, &event);
        }
    }
    is_delivering--;
}

/// Free the slot of a closed hook. The caller is the taker.
static void free_slot(hook_t *hook)
{
    PyObject *object = hook->object;
    hook->object = NULL;
    hook->discards = false;
    atomic_store(&hook->state, FREE);
    Py_DECREF(object);
}

/// Deliver the events of a hook, and free the slot of a closed hook. Returns false while another
/// thread delivers. That thread sees a hook that is closed meanwhile.
static bool try_deliver(hook_t *hook)
{
    do {
        unsigned long none = 0;
        if (!atomic_compare_exchange_strong(&hook->taker, &none, PyThread_get_thread_ident())) {
            return false;
        }
        int state = atomic_load(&hook->state);
        if (state >= OPEN) {
            call_for_events(hook, state == CLOSED);
        }
        if (state == CLOSED) {
            free_slot(hook);
        }
        atomic_store(&hook->taker, 0);
    } while (atomic_load(&hook->state) == CLOSED);
    if (atomic_load(&hook->state) >= OPEN && memrt__event_queue_has_event(&hook->queue)) {
        schedule_delivery();
    }
    return true;
}

/// Callback of Py_AddPendingCall: runs on the main thread, with a GIL. Before Python 3.12, the call
/// may reach a subinterpreter; the next event then schedules another call.
static int deliver_pending(void *unused)
{
    uint64_t begin = memrt__event_clock();
    (void)unused;
    atomic_store(&scheduled, 0);
    if (begin < atomic_load(&end_of_rest)) {
        schedule_delivery();
        return 0;
    }
    for (size_t i = 0; i < SLOTS && memrt__holds_python(); i++) {
        if (atomic_load(&hooks[i].state) >= OPEN) {
            (void)try_deliver(&hooks[i]);
        }
    }
    if (atomic_load(&scheduled)) { /* there are further events already */
        uint64_t end = memrt__event_clock(), took = end - begin;
        atomic_store(&end_of_rest, end + (took < REST_MAX ? took : REST_MAX));
    }
    return 0;
}

/// Deliver the events of a hook, after the end of a delivery in another thread. From inside of a
/// call, do not wait, because that could be for ever.
static void deliver(hook_t *hook)
{
    while (!try_deliver(hook) && !is_delivering) {
        Py_BEGIN_ALLOW_THREADS;
        usleep(PAUSE_US);
        Py_END_ALLOW_THREADS;
    }
}

/// In a forked child: the threads of the parent do not exist. A hook that another thread of the
/// parent was closing stays open.
static void handle_fork(void)
{
    atomic_store(&scheduled, 0);
    for (size_t i = 0; i < SLOTS; i++) {
        hook_t *hook = &hooks[i];
        int closing = CLOSING;
        if (hook->queue.places != NULL) {
            memrt__event_queue_forked(&hook->queue);
        }
        if (atomic_load(&hook->taker) != PyThread_get_thread_ident()) {
            atomic_store(&hook->taker, 0);
        }
        (void)atomic_compare_exchange_strong(&hook->state, &closing, OPEN);
    }
}

static int fork_status = -1;

static void register_fork_handler(void)
{
    fork_status = pthread_atfork(NULL, NULL, handle_fork);
}

/// Take a free slot, with a queue and a new number. NULL with an exception.
static hook_t *take_slot(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    for (size_t i = 0; i < SLOTS; i++) {
        hook_t *hook = &hooks[i];
        int expected = FREE;
        if (atomic_compare_exchange_strong(&hook->state, &expected, OPENING)) {
            (void)pthread_once(&once, register_fork_handler);
            if (fork_status != 0 || !memrt__event_queue_create(&hook->queue)) {
                atomic_store(&hook->state, FREE);
                PyErr_NoMemory();
                return NULL;
            }
            hook->number = hook->number == 0 ? SLOTS + i : hook->number + SLOTS;
            atomic_store(&hook->dropped, 0);
            return hook;
        }
    }
    PyErr_Format(PyExc_RuntimeError, "at most %u hooks can be open: close one", SLOTS);
    return NULL;
}

/// Add the C hook of a slot. -1 with an exception.
static int add_hook(hook_t *hook, memrt_policy_t *policy, uint64_t sample)
{
    memrt_hook_t added = {
        .struct_size = sizeof(added),
        .call = note_event,
        .context = (void *)(uintptr_t)hook->number,
        .policy = policy,
        .sample = sample,
        .wants = wants_block,
    };
    memrt_status_t status;
    Py_BEGIN_ALLOW_THREADS;
    status = memrt__api()->hook_add(&added, &hook->id);
    Py_END_ALLOW_THREADS;
    if (status != MEMRT_OK) { /* 8 hooks of Python and of C exist */
        memrt__raise(status, "cannot add a hook, of at most %u", SLOTS);
        return -1;
    }
    return 0;
}

static PyObject *hook_add(PyObject *module, PyObject *args)
{
    PyObject *object, *of, *handler = NULL;
    unsigned long long sample;
    (void)module;
    if (!PyArg_ParseTuple(args, "OKO:hook_add", &object, &sample, &of)) {
        return NULL;
    }
    if (of != Py_None && (handler = memrt__current_handler_for(of)) == NULL) {
        return NULL;
    }
    hook_t *hook = take_slot();
    PyObject *number = hook == NULL ? NULL : PyLong_FromUnsignedLongLong(hook->number);
    memrt_policy_t *policy = handler == NULL ? NULL : memrt__handler_policy(handler);
    if (number != NULL && add_hook(hook, policy, sample) < 0) {
        Py_CLEAR(number);
    }
    if (number != NULL) {
        hook->object = Py_NewRef(object);
    }
    if (hook != NULL) {
        atomic_store(&hook->state, number == NULL ? FREE : OPEN);
        schedule_delivery(); /* of events since the C hook was added */
    }
    Py_XDECREF(handler);
    return number;
}

/// Return the slot of a hook by number, or NULL: the slot has another hook by now. An exception is
/// set only if the number is no int.
static hook_t *find_hook(PyObject *object)
{
    unsigned long long number = PyLong_AsUnsignedLongLong(object);
    hook_t *hook = &hooks[number % SLOTS];
    return number != 0 && hook->number == number ? hook : NULL;
}

static PyObject *hook_remove(PyObject *module, PyObject *number)
{
    hook_t *hook = find_hook(number);
    int state = OPEN;
    (void)module;
    if (hook == NULL && PyErr_Occurred() != NULL) {
        return NULL;
    }
    if (hook == NULL || !atomic_compare_exchange_strong(&hook->state, &state, CLOSING)) {
        Py_RETURN_NONE;
    }
    Py_BEGIN_ALLOW_THREADS;
    (void)!memrt__api()->hook_remove(hook->id); /* a forked child may have no such hook */
    Py_END_ALLOW_THREADS;
    unsigned long long dropped = atomic_load(&hook->dropped);
    if (atomic_load(&hook->taker) == PyThread_get_thread_ident()) {
        hook->discards = true;
    }
    atomic_store(&hook->state, CLOSED);
    deliver(hook);
    return PyLong_FromUnsignedLongLong(dropped);
}

static PyObject *hook_deliver(PyObject *module, PyObject *number)
{
    hook_t *hook = find_hook(number);
    (void)module;
    if (hook == NULL && PyErr_Occurred() != NULL) {
        return NULL;
    }
    if (hook != NULL) {
        deliver(hook);
    }
    Py_RETURN_NONE;
}

static PyObject *hook_dropped(PyObject *module, PyObject *number)
{
    const hook_t *hook = find_hook(number);
    (void)module;
    if (hook == NULL && PyErr_Occurred() != NULL) {
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(hook == NULL ? 0 : atomic_load(&hook->dropped));
}

PyMethodDef memrt__block_hook_methods[] = {
    {"hook_add", hook_add, METH_VARARGS,
     "hook_add(object, sample, handler, /) -> int\n\n"
     "Have an object called with the fields of each event. Return the number of the hook."},
    {"hook_remove", hook_remove, METH_O,
     "hook_remove(number, /) -> int | None\n\n"
     "Deliver the last events and end the hook. Return the number of dropped events, or None if "
     "no\n"
     "such hook is open."},
    {"hook_deliver", hook_deliver, METH_O,
     "hook_deliver(number, /)\n\nCall the object with the events so far, on the calling thread."},
    {"hook_dropped", hook_dropped, METH_O,
     "hook_dropped(number, /) -> int\n\n"
     "Return the number of events that found the queue full. 0: no such hook is open."},
    {NULL, NULL, 0, NULL},
};
