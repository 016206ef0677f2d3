#include "lookup.h"

#include "handler.h"
#include "meminfo.h"
#include "ndarray.h"

/// Whether the end of a chain holds a MemInfo, as an object of whatever kind. -1 with MemoryError.
static int holds_meminfo(PyObject *anchor)
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
                                        : holds_meminfo(anchor);
    Py_DECREF(anchor);
    return managed;
}

static PyObject *is_managed(PyObject *module, PyObject *object)
{
    (void)module;
    int managed = memrt__is_managed(object);
    return managed >= 0 ? PyBool_FromLong(managed) : NULL;
}

/// The MemInfo object for the end of the chain of `object`. Its shell comes first: a block whose
/// MemInfo was asked for counts as one from then on.
static PyObject *meminfo_of_anchor(PyObject *anchor, PyObject *object)
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
    PyObject *result = meminfo_of_anchor(anchor, object);
    Py_DECREF(anchor);
    return result;
}

static PyObject *meminfo(PyObject *module, PyObject *object)
{
    (void)module;
    return memrt__lookup(object);
}

/// The handler's name for a MemInfo at the end of a chain.
static PyObject *name_of_meminfo(PyObject *anchor)
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

static PyObject *name_of_array(PyObject *array)
{
    int owns = PyArray_CHKFLAGS((PyArrayObject *)array, NPY_ARRAY_OWNDATA);
    PyObject *handler = PyArray_HANDLER((PyArrayObject *)array);
    if (!owns || handler == NULL) {
        Py_RETURN_NONE; /* nobody will free it, or the C library */
    }
    return PyUnicode_FromString(memrt__handler_name(handler));
}

static PyObject *name_of_anchor(PyObject *anchor)
{
    if (PyArray_Check(anchor)) {
        return name_of_array(anchor);
    }
    int holds = holds_meminfo(anchor);
    if (holds <= 0) {
        return holds == 0 ? Py_NewRef(Py_None) : NULL;
    }
    return name_of_meminfo(anchor);
}

static PyObject *name_in_force(void)
{
    PyObject *handler = PyDataMem_GetHandler();
    if (handler == NULL) {
        return NULL;
    }
    PyObject *name = PyUnicode_FromString(memrt__handler_name(handler));
    Py_DECREF(handler);
    return name;
}

static PyObject *handler_name(PyObject *module, PyObject *args)
{
    PyObject *object = Py_None;
    (void)module;
    if (!PyArg_ParseTuple(args, "|O:handler_name", &object)) {
        return NULL;
    }
    if (object == Py_None) {
        return name_in_force();
    }
    PyObject *anchor = memrt_object_anchor(memrt__api(), object);
    if (anchor == NULL) {
        return NULL;
    }
    PyObject *name = name_of_anchor(anchor);
    Py_DECREF(anchor);
    return name;
}

/// `__array_interface__` says it, too, but crashes in NumPy where there is no memory for it.
static PyObject *address(PyObject *Py_UNUSED(module), PyObject *array)
{
    if (!PyArray_Check(array)) {
        PyErr_Format(PyExc_TypeError, "a numpy.ndarray has an address, got %s",
                     Py_TYPE(array)->tp_name);
        return NULL;
    }
    return PyLong_FromVoidPtr(PyArray_DATA((PyArrayObject *)array));
}

PyMethodDef memrt__lookup_methods[] = {
    {"address", address, METH_O, "address(array) -> int\n\nThat of its first element."},
    {"meminfo", meminfo, METH_O,
     "meminfo(array) -> MemInfo\n\n"
     "The MemInfo behind an array or memoryview, found through views, reshapes and buffers.\n"
     "Raises ValueError when the memory is not memrt's; adopt() takes such memory over."},
    {"is_managed", is_managed, METH_O,
     "is_managed(array) -> bool\n\nWhether the memory behind `array` is managed by memrt."},
    {"handler_name", handler_name, METH_VARARGS,
     "handler_name(array=None) -> str or None\n\n"
     "What manages the memory of `array`: 'memrt' for the default policy, 'memrt:NAME' for "
     "others,\n"
     "another handler's name, or None for memory that no handler made.\n"
     "Without an array: the handler that NumPy uses in this context now."},
    {NULL, NULL, 0, NULL},
};
