// Include the headers for extension modules from C++.

#include <Python.h>
#include <numpy/arrayobject.h>

#include <memrt/import.h>
#include <memrt/memrt.h>
#include <memrt/numpy.h>

static const memrt_api_t *api;

static PyObject *zeros(PyObject *, PyObject *argument)
{
    npy_intp size = PyLong_AsSsize_t(argument);
    memrt_new_options_t options = {};
    memrt_meminfo_t *mi;
    options.struct_size = sizeof(options);
    options.zeroed = 1;
    if (api->meminfo_new(static_cast<size_t>(size), &options, &mi) != MEMRT_OK) {
        return PyErr_NoMemory();
    }
    return memrt_meminfo_as_array(api, mi, PyArray_DescrFromType(NPY_UINT8), 1, &size, nullptr, 0,
                                  NPY_ARRAY_WRITEABLE);
}

static PyMethodDef methods[] = {
    {"zeros", zeros, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "cplusplus", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit_cplusplus(void)
{
    import_array();
    api = memrt_import();
    return api != nullptr ? PyModule_Create(&definition) : nullptr;
}
