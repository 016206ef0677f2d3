#include "support/run_program.h"

#include <stdio.h>

/* Location of a thread's innermost Python frame. */
#if PY_VERSION_HEX >= 0x030D0000
typedef struct _PyInterpreterFrame *frame_t;
#define INNERMOST_FRAME(state) (&(state)->current_frame)
#elif PY_VERSION_HEX >= 0x030B0000
typedef struct _PyInterpreterFrame *frame_t;
#define INNERMOST_FRAME(state) (&(state)->cframe->current_frame)
#else
typedef PyFrameObject *frame_t;
#define INNERMOST_FRAME(state) (&(state)->frame)
#endif

/* Python calls that a thread may still make, of `RECURSION_LIMIT(state)`. */
#if PY_VERSION_HEX >= 0x030C0000
#define RECURSION_LEFT(state) ((state)->py_recursion_remaining)
#define RECURSION_LIMIT(state) ((state)->py_recursion_limit)
#elif PY_VERSION_HEX >= 0x030B0000
#define RECURSION_LEFT(state) ((state)->recursion_remaining)
#define RECURSION_LIMIT(state) ((state)->recursion_limit)
#endif

/// The Python callers below a program, unlinked from the thread while the program runs. The frames
/// stay alive, because their C calls have not returned.
typedef struct callers {
    PyThreadState *state;
    frame_t innermost;
    int depth;
} callers_t;

/// Unlink the Python callers, and restore the full recursion limit.
static callers_t hide_callers(void)
{
    callers_t callers = {.state = PyThreadState_Get()};
    callers.innermost = *INNERMOST_FRAME(callers.state);
    *INNERMOST_FRAME(callers.state) = NULL;
#ifdef RECURSION_LEFT
    callers.depth = RECURSION_LIMIT(callers.state) - RECURSION_LEFT(callers.state);
    RECURSION_LEFT(callers.state) += callers.depth;
#else
    callers.depth = callers.state->recursion_depth;
    callers.state->recursion_depth = 0;
#endif
    return callers;
}

static void restore_callers(const callers_t *callers)
{
    *INNERMOST_FRAME(callers->state) = callers->innermost;
#ifdef RECURSION_LEFT
    RECURSION_LEFT(callers->state) -= callers->depth;
#else
    callers->state->recursion_depth += callers->depth;
#endif
}

static PyObject *call_outermost(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "call_outermost() missing required argument 'function'");
        return NULL;
    }
    callers_t callers = hide_callers();
    PyObject *result = PyObject_Vectorcall(args[0], args + 1, (size_t)(count - 1), NULL);
    restore_callers(&callers);
    return result;
}

static PyObject *call_at_exit(PyObject *module, PyObject *args)
{
    PyObject *function, *owner;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:call_at_exit", &function, &owner)) {
        return NULL;
    }
    callers_t callers = hide_callers();
    PyObject *result = PyObject_CallNoArgs(function);
    if (result == NULL) {
        PyErr_WriteUnraisable(owner);
    }
    restore_callers(&callers);
    Py_XDECREF(result);
    Py_RETURN_NONE;
}

static PyObject *run_code(PyObject *module, PyObject *args)
{
    PyObject *code, *globals;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!:run_code", &PyCode_Type, &code, &PyDict_Type, &globals)) {
        return NULL;
    }
    callers_t callers = hide_callers();
    PyObject *result = PyEval_EvalCode(code, globals, globals);
    restore_callers(&callers);
    return result;
}

/// Run a script from a stream, and close the stream.
static PyObject *run_stream(FILE *file, const char *name, PyObject *globals)
{
    callers_t callers = hide_callers();
    PyObject *result = PyRun_FileExFlags(file, name, Py_file_input, globals, globals, 1, NULL);
    restore_callers(&callers);
    if (result == NULL && !PyErr_Occurred()) {
        PyErr_NoMemory(); /* the interpreter's parser sets no exception for it */
    }
    return result;
}

static PyObject *run_file(PyObject *module, PyObject *args)
{
    int descriptor;
    PyObject *name, *globals;
    (void)module;
    if (!PyArg_ParseTuple(args, "iO&O!:run_file", &descriptor, PyUnicode_FSConverter, &name,
                          &PyDict_Type, &globals)) {
        return NULL;
    }
    FILE *file = fdopen(descriptor, "rb");
    PyObject *result = file != NULL ? run_stream(file, PyBytes_AS_STRING(name), globals)
                                    : PyErr_SetFromErrno(PyExc_OSError);
    Py_DECREF(name);
    return result;
}

PyMethodDef memrt__program_methods[] = {
    {"call_outermost", (PyCFunction)(void (*)(void))call_outermost, METH_FASTCALL,
     "call_outermost(function, *args) -> object\n\n"
     "Call function(*args) as the interpreter calls a program, with no Python frame below."},
    {"call_at_exit", call_at_exit, METH_VARARGS,
     "call_at_exit(function, owner)\n\n"
     "Call function() as the interpreter does at exit. An exception is printed, with `owner`,\n"
     "and ignored."},
    {"run_code", run_code, METH_VARARGS,
     "run_code(code, globals)\n\nRun code as the interpreter runs a program."},
    {"run_file", run_file, METH_VARARGS,
     "run_file(descriptor, name, globals)\n\n"
     "Run Python source from a file descriptor as the interpreter runs a script. Close the\n"
     "file descriptor, except for an OSError because the descriptor is not open for reading."},
    {NULL, NULL, 0, NULL},
};
