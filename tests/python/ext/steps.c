/// memrt/numpy.h compiled so that each step of creating an array can fail.

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <numpy/arrayobject.h>

#include <memrt/import.h>

#include <string.h>

static const char *failing = ""; ///< name of the failing step

static int fails(const char *step)
{
    if (strcmp(step, failing) != 0) {
        return 0;
    }
    PyErr_Format(PyExc_RuntimeError, "no %s", step);
    return 1;
}

static PyObject *new_capsule(void *pointer, const char *name, PyCapsule_Destructor destructor)
{
    return fails("capsule") ? NULL : PyCapsule_New(pointer, name, destructor);
}

/// Steal the reference to `descr` also on failure, as NumPy's function does.
static PyObject *new_array(PyTypeObject *type, PyArray_Descr *descr, int nd, const npy_intp *dims,
                           const npy_intp *strides, void *data, int flags, PyObject *object)
{
    if (fails("array")) {
        Py_DECREF(descr);
        return NULL;
    }
    return PyArray_NewFromDescr(type, descr, nd, dims, strides, data, flags, object);
}

/// Fail by NumPy's own check: the array already has a base.
static int set_base(PyArrayObject *array, PyObject *base)
{
    if (strcmp(failing, "base") == 0) {
        Py_INCREF(Py_None);
        if (PyArray_SetBaseObject(array, Py_None) < 0) {
            return -1;
        }
    }
    return PyArray_SetBaseObject(array, base);
}

#undef PyArray_NewFromDescr
#undef PyArray_SetBaseObject
#define PyCapsule_New new_capsule
#define PyArray_NewFromDescr new_array
#define PyArray_SetBaseObject set_base
#include <memrt/numpy.h>

static const memrt_api_t *api;
static int ended;

static void count_end(void *data, size_t size, void *info)
{
    (void)data;
    (void)size;
    (void)info;
    ended++;
}

/// make(step, dtype) -> array of one element, unless the step fails; resets the count of ended()
static PyObject *make(PyObject *module, PyObject *args)
{
    static char buffer[64];
    static const npy_intp one = 1;
    const memrt_new_options_t options = {.struct_size = sizeof(options), .dtor = count_end};
    memrt_meminfo_t *mi;
    PyObject *descr;
    (void)module;
    if (!PyArg_ParseTuple(args, "sO!", &failing, &PyArrayDescr_Type, &descr)) {
        return NULL;
    }
    ended = 0;
    if (api->meminfo_adopt(buffer, sizeof(buffer), &options, &mi) != MEMRT_OK) {
        return PyErr_NoMemory();
    }
    Py_INCREF(descr);
    PyObject *array = memrt_meminfo_as_array(api, mi, (PyArray_Descr *)descr, 1, &one, NULL, 0, 0);
    failing = "";
    return array;
}

/// ended() -> calls of the destructor since make()
static PyObject *get_ended(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromLong(ended);
}

static PyMethodDef methods[] = {
    {"make", make, METH_VARARGS, NULL},
    {"ended", get_ended, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "steps", .m_size = -1,
                                 .m_methods = methods};

PyMODINIT_FUNC PyInit_steps(void)
{
    import_array();
    api = memrt_import();
    return api != NULL ? PyModule_Create(&definition) : NULL;
}
