/// running_sum: the sums of the first 1, 2, ... n elements of an array, in memory of memrt.

#include <Python.h>

#include <numpy/arrayobject.h>

#include <memrt/numpy.h>

static const memrt_api_t *api;

/// Fill `results` from `values`, which has `count` elements.
static void compute(const double *values, double *results, npy_intp count)
{
    double result = 0;
    for (npy_intp i = 0; i < count; i++) {
        result += values[i];
        results[i] = result;
    }
}

static PyObject *running_sum(PyObject *module, PyObject *object)
{
    (void)module;
    int flags = NPY_ARRAY_CARRAY_RO;
    PyArrayObject *input = (PyArrayObject *)PyArray_FROMANY(object, NPY_DOUBLE, 1, 1, flags);
    if (input == NULL) {
        return NULL;
    }
    npy_intp count = PyArray_DIM(input, 0);
    memrt_meminfo_t *mi = api->allocate((size_t)count * sizeof(double));
    if (mi == NULL) {
        Py_DECREF(input);
        return PyErr_NoMemory();
    }
    compute((const double *)PyArray_DATA(input), (double *)api->get_data(mi), count);
    Py_DECREF(input);
    PyArray_Descr *descr = PyArray_DescrFromType(NPY_DOUBLE); /* the array owns mi and descr */
    return memrt_meminfo_as_array(api, mi, descr, 1, &count, NULL, 0, NPY_ARRAY_CARRAY);
}

static PyMethodDef methods[] = {
    {"running_sum", running_sum, METH_O, "Return the sums of the first 1, 2, ... n elements."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "running_sum",
                                 .m_methods = methods};

PyMODINIT_FUNC PyInit_running_sum(void)
{
    import_array();
    api = memrt_import();
    return api != NULL ? PyModule_Create(&definition) : NULL;
}
