#include "support/oom_error.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <structmember.h>

#include "support/refusal_cause.h"

typedef struct shortage {
    PyBaseExceptionObject base;
    Py_ssize_t nbytes; ///< requested bytes; 0: the request had no size
    int lacks_holders; ///< allocations were tracked, and the text has no holders yet
    char text[4096];   ///< "" for an instance created by a call of the class, with arguments
} shortage_t;

static PyObject *type;
/// Prepared instance; NULL: there was no memory. A failure takes the instance by an exchange, so
/// each instance has one user.
static _Atomic(shortage_t *) prepared_error;

/// Prepare an instance for the next failure, if there is memory.
static void prepare_error(void)
{
    shortage_t *none = NULL;
    if (atomic_load(&prepared_error) == NULL) {
        PyObject *instance = PyObject_CallNoArgs(type);
        if (instance == NULL) {
            PyErr_Clear();
            return;
        }
        /* gc.freeze() would keep a tracked instance, and later its traceback, forever. */
        PyObject_GC_UnTrack(instance);
        /* The collector may have run and reentered this function, or another thread was first. */
        if (!atomic_compare_exchange_strong(&prepared_error, &none, (shortage_t *)instance)) {
            Py_DECREF(instance);
        }
    }
}

/// Find the holders of the largest buffers. NULL with an exception.
static PyObject *find_holders(void)
{
    PyObject *module = PyImport_ImportModule("memrt._leaks.shortage");
    PyObject *text = module != NULL ? PyObject_CallMethod(module, "describe_holders", NULL) : NULL;
    Py_XDECREF(module);
    return text;
}

/// Append the holders of the largest buffers to the text, at the first use of the text. Without
/// memory for the search, or at the end of the interpreter, the text has no holders. -1 with an
/// exception that is no Exception, for example KeyboardInterrupt.
static int append_holders(shortage_t *error)
{
    if (!error->lacks_holders) {
        return 0;
    }
    error->lacks_holders = 0; /* first: the search may read the text */
    PyObject *text = find_holders();
    const char *lines = text != NULL ? PyUnicode_AsUTF8(text) : NULL;
    if (lines != NULL) {
        size_t length = strlen(error->text);
        snprintf(error->text + length, sizeof(error->text) - length, "%s", lines);
    } else if (!PyErr_ExceptionMatches(PyExc_Exception)) {
        error->lacks_holders = 1;
        return -1;
    } else {
        PyErr_Clear();
    }
    Py_XDECREF(text);
    return 0;
}

static PyObject *shortage_str(PyObject *self)
{
    const char *text = ((shortage_t *)self)->text;
    if (text[0] == '\0') {
        return ((PyTypeObject *)PyExc_MemoryError)->tp_str(self);
    }
    if (append_holders((shortage_t *)self) < 0) {
        return NULL;
    }
    /* The text may be cut within a character. */
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

/// Support pickle and copy: the text becomes the argument.
static PyObject *shortage_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *text = shortage_str(self);
    return text == NULL ? NULL : Py_BuildValue("(O(N))", Py_TYPE(self), text);
}

static PyMethodDef methods[] = {
    {"__reduce__", shortage_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"nbytes", T_PYSSIZET, offsetof(shortage_t, nbytes), READONLY,
     "Requested bytes; 0 for a request without a size."},
    {NULL, 0, 0, 0, NULL},
};

PyDoc_STRVAR(
    oom_doc,
    "Exception for a request that memrt refuses for lack of memory.\n"
    "\n"
    "The text states the request, the live and cached memory, and the limits of the system.\n"
    "Further lines list the scopes with most live memory, the allocation sites with most\n"
    "live memory, if allocations were tracked, and the largest named buffers. While tracking\n"
    "is on, the last lines name the Python objects that hold the largest tracked buffers.\n"
    "\n"
    "Notes\n"
    "-----\n"
    "Raising the exception allocates nothing. The class is a subclass of MemoryError.\n"
    "\n"
    "The first ``str(error)`` searches the objects of the program for the holders. The text\n"
    "has no holders if the search finds no memory, and at the end of the interpreter.\n"
    "\n"
    "Examples\n"
    "--------\n"
    ">>> import memrt\n"
    ">>> try:\n"
    "...     memrt.alloc(2**60)\n"
    "... except memrt.OutOfMemoryError as error:\n"
    "...     print(error.nbytes == 2**60, str(error).splitlines()[0])\n"
    "True no memory for 1.0 EiB (1152921504606846976 bytes) of policy 'default'");

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)(uintptr_t)oom_doc},
    {Py_tp_str, shortage_str},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "memrt.OutOfMemoryError",
    .basicsize = sizeof(shortage_t),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int memrt__oom_error_setup(PyObject *module)
{
    if (type == NULL) { /* a second import keeps the type, since code may refer to it */
        type = PyType_FromSpecWithBases(&spec, PyExc_MemoryError);
    }
    if (type == NULL || PyModule_AddObjectRef(module, "OutOfMemoryError", type) < 0) {
        return -1;
    }
    prepare_error();
    return 0;
}

PyObject *memrt__raise_out_of_memory(const memrt_policy_t *policy, size_t size, const char *what)
{
    prepare_error();
    shortage_t *error = atomic_exchange(&prepared_error, NULL);
    if (error == NULL) {
        return PyErr_NoMemory();
    }
    prepare_error(); /* before the exception is set */
    size_t written = 0;
    if (what != NULL) {
        written = (size_t)snprintf(error->text, sizeof(error->text) / 2, "%s\n", what);
        written = Py_MIN(written, sizeof(error->text) / 2 - 1);
    }
    memrt__api()->explain_shortage(policy, size, error->text + written,
                                   sizeof(error->text) - written);
    error->lacks_holders = memrt__api()->tracking_enabled() != 0;
    error->nbytes = (Py_ssize_t)Py_MIN(size, (size_t)PY_SSIZE_T_MAX);
    size_t length = strlen(error->text);
    if (error->text[length - 1] == '\n') {
        error->text[length - 1] = '\0';
    }
    PyObject_GC_Track(error);
    PyObject *cause = memrt__refusal_cause_take();
    if (cause != NULL) {
        PyException_SetCause((PyObject *)error, cause); /* steals */
    }
    PyErr_SetObject(type, (PyObject *)error);
    Py_DECREF(error);
    return NULL;
}
