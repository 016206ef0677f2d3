#include "callbacks/pressure.h"

#include <stdatomic.h>
#include <unistd.h>

#include "core/interpreter.h"
#include "support/errors.h"

_Static_assert(MEMRT_PRESSURE_CALLBACKS <= 32, "a word has one bit per callback");

/// Python callbacks by token, a dict that the package keeps. Set once, with the GIL or before other
/// threads see the token.
static PyObject *callbacks;

static atomic_uint due;                             ///< tokens with a coming call
static atomic_int levels[MEMRT_PRESSURE_CALLBACKS]; ///< level of the coming call

static const char *const level_names[] = {"none", "low", "medium", "critical"};
static const char *const source_names[] = {"headroom", "stalls", "events", "notices"};

/// Call the callback of a token. Errors go to sys.unraisablehook.
static void call_callback(unsigned token)
{
    int level = atomic_load(&levels[token]);
    PyObject *key = PyLong_FromLong((long)token);
    PyObject *callback = key == NULL ? NULL : PyObject_GetItem(callbacks, key);
    Py_XDECREF(key);
    if (callback == NULL) { /* removed meanwhile, or no memory for the key */
        PyErr_Clear();
        return;
    }
    PyObject *result = PyObject_CallFunction(callback, "s", level_names[level]);
    if (result == NULL) {
        PyErr_WriteUnraisable(callback);
    }
    Py_XDECREF(result);
    Py_DECREF(callback);
}

/// Callback of Py_AddPendingCall: runs on the main thread, with the GIL.
static int call_due_callbacks(void *unused)
{
    unsigned tokens = atomic_exchange(&due, 0);
    (void)unused;
    for (unsigned token = 0; token < MEMRT_PRESSURE_CALLBACKS; token++) {
        if ((tokens >> token & 1) != 0) {
            call_callback(token);
        }
    }
    return 0;
}

#define TRIES 100      /* attempts while the queue of pending calls is full */
#define PAUSE_US 10000 /* between two attempts */

/// Callback of the C library, on its thread and without the GIL. Several rises before the main
/// thread runs become one call, with the last level.
static void note_rise(void *context, uint64_t level)
{
    unsigned token = (unsigned)(uintptr_t)context;
    atomic_store(&levels[token], (int)level);
    unsigned before = atomic_fetch_or(&due, 1u << token);
    for (int i = 0; before == 0 && i < TRIES; i++) {
        if (memrt__interpreter_schedule_call(call_due_callbacks)) {
            return;
        }
        usleep(PAUSE_US);
    }
}

static PyObject *pressure_setup(PyObject *module, PyObject *table)
{
    (void)module;
    if (!PyDict_Check(table)) {
        PyErr_SetString(PyExc_TypeError, "the table of callbacks must be a dict");
        return NULL;
    }
    Py_XSETREF(callbacks, Py_NewRef(table));
    Py_RETURN_NONE;
}

static int check_token(unsigned token)
{
    if (token < MEMRT_PRESSURE_CALLBACKS) {
        return 0;
    }
    PyErr_Format(PyExc_ValueError, "token must be less than %d, got %u", MEMRT_PRESSURE_CALLBACKS,
                 token);
    return -1;
}

static PyObject *pressure_add(PyObject *module, PyObject *args)
{
    unsigned token;
    int level;
    uint64_t id;
    (void)module;
    if (!PyArg_ParseTuple(args, "Ii:pressure_add", &token, &level) || check_token(token) < 0) {
        return NULL;
    }
    if (callbacks == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "pressure_setup must be called first");
        return NULL;
    }
    memrt_status_t status = memrt__api()->pressure_add(note_rise, (void *)(uintptr_t)token,
                                                       (memrt_pressure_level_t)level, &id);
    if (status == MEMRT_ENOMEM) {
        return PyErr_NoMemory();
    }
    if (status != MEMRT_OK) {
        return memrt__raise(status, "level must be from 1 to 3, with room for one more callback");
    }
    return PyLong_FromUnsignedLongLong(id);
}

static PyObject *pressure_remove(PyObject *module, PyObject *args)
{
    unsigned token;
    unsigned long long id;
    memrt_status_t status;
    (void)module;
    if (!PyArg_ParseTuple(args, "IK:pressure_remove", &token, &id) || check_token(token) < 0) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = memrt__api()->pressure_remove(id);
    Py_END_ALLOW_THREADS;
    if (status == MEMRT_OK) {
        atomic_fetch_and(&due, ~(1u << token));
    }
    return PyBool_FromLong(status == MEMRT_OK);
}

static PyObject *pressure_read(PyObject *module, PyObject *unused)
{
    memrt_pressure_t pressure = {.struct_size = sizeof(pressure)};
    (void)module;
    (void)unused;
    (void)!memrt__api()->pressure_read(&pressure); /* the argument is valid */
    return Py_BuildValue("ssKKKsK", level_names[pressure.level], source_names[pressure.source],
                         (unsigned long long)pressure.limit, (unsigned long long)pressure.used,
                         (unsigned long long)pressure.headroom, pressure.of,
                         (unsigned long long)pressure.above_soft);
}

PyMethodDef memrt__pressure_methods[] = {
    {"pressure_read", pressure_read, METH_NOARGS,
     "pressure_read() -> tuple\n\n"
     "Return level, source, nearest limit, bytes in use, bytes left, the owner of the limit, and\n"
     "the number of exceeded soft limits."},
    {"pressure_setup", pressure_setup, METH_O,
     "pressure_setup(callbacks, /) -> None\n\n"
     "Set the dict of callbacks by token."},
    {"pressure_add", pressure_add, METH_VARARGS,
     "pressure_add(token, level, /) -> int\n\n"
     "Have the callback of a token called when the level rises to a level or above. Return an id."},
    {"pressure_remove", pressure_remove, METH_VARARGS,
     "pressure_remove(token, id, /) -> bool\n\n"
     "End the calls of a token. False: the id is unknown."},
    {NULL, NULL, 0, NULL},
};
