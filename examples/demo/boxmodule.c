/// Compute the box mean for NumPy. The result is an array over the buffer that box.c allocated.
///
/// The extension needs only the headers in memrt.get_include(), and links no library.

#include <Python.h>
#include <numpy/arrayobject.h>

#include <memrt/import.h>
#include <memrt/numpy.h>

#include "box.h"

static const memrt_api_t *api;

static PyObject *raise(memrt_status_t status)
{
    if (status == MEMRT_ENOMEM)
        return PyErr_NoMemory();
    PyErr_SetString(PyExc_RuntimeError, api->status_text(status));
    return NULL;
}

static PyObject *mean_of(PyArrayObject *image, size_t radius)
{
    npy_intp *shape = PyArray_DIMS(image);
    memrt_meminfo_t *means;
    memrt_status_t status;
    Py_BEGIN_ALLOW_THREADS;
    status = box_mean(api, PyArray_DATA(image), (size_t)shape[0], (size_t)shape[1], radius, &means);
    Py_END_ALLOW_THREADS;
    if (status != MEMRT_OK)
        return raise(status);
    return memrt_meminfo_as_array(api, means, PyArray_DescrFromType(NPY_UINT8), 2, shape, NULL, 0,
                                  NPY_ARRAY_WRITEABLE);
}

static PyObject *mean(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *object;
    Py_ssize_t radius;
    if (!PyArg_ParseTuple(arguments, "On:mean", &object, &radius))
        return NULL;
    if (radius < 0) {
        PyErr_SetString(PyExc_ValueError, "radius must not be negative");
        return NULL;
    }
    PyObject *image = PyArray_FROMANY(object, NPY_UINT8, 2, 2, NPY_ARRAY_CARRAY_RO);
    if (image == NULL)
        return NULL;
    PyObject *result = mean_of((PyArrayObject *)image, (size_t)radius);
    Py_DECREF(image);
    return result;
}

static PyMethodDef methods[] = {
    {"mean", mean, METH_VARARGS,
     "mean(image, radius): return the mean of pixels within radius of each, (h, w) uint8."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "box", .m_size = -1,
                                        .m_methods = methods};

PyMODINIT_FUNC PyInit_box(void)
{
    import_array();
    api = memrt_import();
    return api == NULL ? NULL : PyModule_Create(&definition);
}
