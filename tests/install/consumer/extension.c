/// Extension module of a user: gets the table by memrt_import() and links nothing.

#include <Python.h>

#include <memrt/import.h>

static PyObject *make_and_drop(PyObject *module, PyObject *Py_UNUSED(unused))
{
    (void)module;
    const memrt_api_t *api = memrt_import();
    if (api == NULL)
        return NULL;
    memrt_meminfo_t *mi = api->allocate(1000);
    if (mi == NULL)
        return PyErr_NoMemory();
    PyObject *size = PyLong_FromSize_t(api->size(mi));
    api->release(mi);
    return size;
}

static PyMethodDef methods[] = {
    {"make_and_drop", make_and_drop, METH_NOARGS,
     "Allocate and release a buffer, and return its size."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "consumer", .m_methods = methods};

PyMODINIT_FUNC PyInit_consumer(void)
{
    return PyModuleDef_Init(&definition);
}
