/// An extension over libmemrt alone, without NumPy, that every interpreter can import.

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <memrt/memrt.h>

static const memrt_api_t *api;

/// make(nbytes) -> address of a new MemInfo
static PyObject *make(PyObject *module, PyObject *argument)
{
    (void)module;
    memrt_meminfo_t *mi = api->allocate(PyLong_AsSize_t(argument));
    return mi != NULL ? PyLong_FromVoidPtr(mi) : PyErr_NoMemory();
}

/// release(address)
static PyObject *release(PyObject *module, PyObject *argument)
{
    (void)module;
    api->release(PyLong_AsVoidPtr(argument));
    Py_RETURN_NONE;
}

/// churn(rounds): create and release that many MemInfos, with the GIL of the interpreter
static PyObject *churn(PyObject *module, PyObject *argument)
{
    (void)module;
    for (long i = PyLong_AsLong(argument); i > 0; i--) {
        memrt_meminfo_t *mi = api->allocate(1000);
        if (mi == NULL) {
            return PyErr_NoMemory();
        }
        api->release(mi);
    }
    Py_RETURN_NONE;
}

/// counters() -> (mi_alloc, mi_free, live) of the process
static PyObject *counters(PyObject *module, PyObject *unused)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    (void)module;
    (void)unused;
    if (api->stats_read(NULL, &stats) != MEMRT_OK) {
        PyErr_SetString(PyExc_RuntimeError, "no account");
        return NULL;
    }
    return Py_BuildValue("(KKK)", (unsigned long long)stats.mi_alloc,
                         (unsigned long long)stats.mi_free, (unsigned long long)stats.live);
}

static PyMethodDef methods[] = {
    {"make", make, METH_O, NULL},   {"release", release, METH_O, NULL},
    {"churn", churn, METH_O, NULL}, {"counters", counters, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int execute(PyObject *module)
{
    (void)module;
    const char *why = "";
    api = memrt_get_api(MEMRT_ABI_MAJOR, &why); /* the same for every interpreter */
    if (api == NULL) {
        PyErr_SetString(PyExc_ImportError, why);
    }
    return api != NULL ? 0 : -1;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
    {0, NULL},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "core", .m_methods = methods,
                                 .m_slots = slots};

PyMODINIT_FUNC PyInit_core(void)
{
    return PyModuleDef_Init(&definition);
}
