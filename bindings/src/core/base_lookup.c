#include "core/base_lookup.h"

#include "core/mem_handler.h"
#include "core/meminfo_object.h"
#include "support/arguments.h"
#include "support/ndarray.h"

/// Return whether the end of a chain, which is not an array, holds a MemInfo. -1 with MemoryError.
static int has_meminfo(PyObject *anchor)
{
    return PyCapsule_IsValid(anchor, MEMRT_MEMINFO_CAPSULE) ? 1 : memrt_exporter_check(anchor);
}

int memrt__is_managed(PyObject *object)
{
    const memrt_api_t *api = memrt__api();
    PyObject *anchor = memrt_object_anchor(api, object);
    if (anchor == NULL) {
        return -1;
    }
    int managed = PyArray_Check(anchor) ? memrt__array_is_block(api, (PyArrayObject *)anchor)
                                        : has_meminfo(anchor);
    Py_DECREF(anchor);
    return managed;
}

static PyObject *is_managed(PyObject *module, PyObject *object)
{
    (void)module;
    int managed = memrt__is_managed(object);
    return managed >= 0 ? PyBool_FromLong(managed) : NULL;
}

/// Create the MemInfo object for the end of the chain of `object`. The shell is allocated first: a
/// block whose MemInfo was requested counts as a MemInfo from then on.
static PyObject *create_anchor_meminfo(PyObject *anchor, PyObject *object)
{
    memrt_meminfo_t *mi;
    memrt_meminfo_object_t *shell = memrt__meminfo_shell();
    if (shell == NULL || memrt__anchor_meminfo(memrt__api(), anchor, object, &mi) < 0) {
        Py_XDECREF(shell);
        return NULL;
    }
    return memrt__meminfo_hand_out(shell, mi);
}

PyObject *memrt__lookup(PyObject *object)
{
    PyObject *anchor = memrt_object_anchor(memrt__api(), object);
    if (anchor == NULL || memrt__meminfo_check(anchor)) {
        return anchor;
    }
    PyObject *result = create_anchor_meminfo(anchor, object);
    Py_DECREF(anchor);
    return result;
}

static PyObject *find_meminfo(PyObject *module, PyObject *object)
{
    (void)module;
    return memrt__lookup(object);
}

/// Return the handler name of the MemInfo at the end of a chain.
static PyObject *get_meminfo_handler_name(PyObject *anchor)
{
    const memrt_api_t *api = memrt__api();
    memrt_meminfo_t *mi;
    if (memrt_array_meminfo(api, anchor, &mi) < 0) {
        return NULL;
    }
    memrt_policy_t *policy = api->policy_of(mi);
    int is_default = policy == api->policy_default();
    PyObject *name = PyUnicode_FromFormat("memrt%s%s", is_default ? "" : ":",
                                          is_default ? "" : api->policy_name(policy));
    api->release(mi);
    return name;
}

/// Return the handler name of an array at the end of a chain, or None.
static PyObject *get_array_handler_name(PyObject *array)
{
    int owns = memrt__array_owns_data((PyArrayObject *)array);
    PyObject *handler = MEMRT__ARRAY_MEMBER(array, mem_handler);
    if (!owns || handler == NULL) {
        Py_RETURN_NONE; /* the data is not owned, or the C library frees it */
    }
    return memrt__text(memrt__handler_name(handler));
}

static PyObject *get_anchor_handler_name(PyObject *anchor)
{
    if (PyArray_Check(anchor)) {
        return get_array_handler_name(anchor);
    }
    int holds = has_meminfo(anchor);
    if (holds <= 0) {
        return holds == 0 ? Py_NewRef(Py_None) : NULL;
    }
    return get_meminfo_handler_name(anchor);
}

static PyObject *get_current_handler_name(void)
{
    PyObject *handler = PyDataMem_GetHandler();
    if (handler == NULL) { /* GCOV_EXCL_BR_LINE: NumPy's context variable has a default */
        return NULL;
    }
    PyObject *name = memrt__text(memrt__handler_name(handler));
    Py_DECREF(handler);
    return name;
}

static PyObject *get_handler_name(PyObject *module, PyObject *args)
{
    PyObject *object = Py_None;
    (void)module;
    if (!PyArg_ParseTuple(args, "|O:handler_name", &object)) {
        return NULL;
    }
    if (object == Py_None) {
        return get_current_handler_name();
    }
    PyObject *anchor = memrt_object_anchor(memrt__api(), object);
    if (anchor == NULL) {
        return NULL;
    }
    PyObject *name = get_anchor_handler_name(anchor);
    Py_DECREF(anchor);
    return name;
}

/// Return the address of the data. NumPy's `__array_interface__` has the address too, but crashes
/// when memory runs out.
static PyObject *get_data_address(PyObject *Py_UNUSED(module), PyObject *array)
{
    if (!PyArray_Check(array)) {
        PyErr_Format(PyExc_TypeError, "array must be a numpy.ndarray, got %s",
                     Py_TYPE(array)->tp_name);
        return NULL;
    }
    return PyLong_FromVoidPtr(PyArray_DATA((PyArrayObject *)array));
}

PyDoc_STRVAR(meminfo_doc,
             "meminfo(array, /)\n"
             "--\n"
             "\n"
             "Return the MemInfo behind an array, through views, reshapes and buffers.\n"
             "\n"
             "Parameters\n"
             "----------\n"
             "array : object\n"
             "    Array, memoryview, MemInfo, or object with ``__memrt_meminfo__``.\n"
             "\n"
             "Returns\n"
             "-------\n"
             "MemInfo\n"
             "    MemInfo with a further reference to the buffer.\n"
             "\n"
             "Raises\n"
             "------\n"
             "ValueError\n"
             "    memrt does not manage the memory. :func:`adopt` puts such memory under memrt.\n"
             "\n"
             "Examples\n"
             "--------\n"
             ">>> import memrt\n"
             ">>> table = memrt.zeros((100, 10))\n"
             ">>> mi = memrt.meminfo(table[5:].T)\n"
             ">>> mi.nbytes, mi == table.base\n"
             "(8000, True)");

PyDoc_STRVAR(
    is_managed_doc,
    "is_managed(array, /)\n"
    "--\n"
    "\n"
    "Return whether memrt manages the memory behind an array.\n"
    "\n"
    "Parameters\n"
    "----------\n"
    "array : object\n"
    "    Array, memoryview, MemInfo, or object with ``__memrt_meminfo__``.\n"
    "\n"
    "Returns\n"
    "-------\n"
    "bool\n"
    "    True if :func:`meminfo` returns a MemInfo.\n"
    "\n"
    "Examples\n"
    "--------\n"
    ">>> import memrt\n"
    ">>> import numpy as np\n"
    ">>> memrt.is_managed(memrt.zeros(3)[1:]), memrt.is_managed(np.frombuffer(b\"abc\", \"u1\"))\n"
    "(True, False)");

PyDoc_STRVAR(
    handler_name_doc,
    "handler_name(array=None, /)\n"
    "--\n"
    "\n"
    "Return the name of the NumPy handler of an array, or of the handler in force.\n"
    "\n"
    "Parameters\n"
    "----------\n"
    "array : object, optional\n"
    "    Array, memoryview or MemInfo. None: the handler that NumPy uses in this context now.\n"
    "\n"
    "Returns\n"
    "-------\n"
    "str or None\n"
    "    'memrt' for the default policy, 'memrt:NAME' for other policies, or the name of\n"
    "    another handler. None: the memory has no known handler.\n"
    "\n"
    "Examples\n"
    "--------\n"
    ">>> import memrt\n"
    ">>> memrt.handler_name(memrt.zeros(3))\n"
    "'memrt'\n"
    ">>> with memrt.Policy(name=\"big\"):\n"
    "...     memrt.handler_name()\n"
    "'memrt:big'");

PyMethodDef memrt__lookup_methods[] = {
    {"address", get_data_address, METH_O,
     "address(array) -> int\n\nReturn the address of the first element."},
    {"meminfo", find_meminfo, METH_O, meminfo_doc},
    {"is_managed", is_managed, METH_O, is_managed_doc},
    {"handler_name", get_handler_name, METH_VARARGS, handler_name_doc},
    {NULL, NULL, 0, NULL},
};
