#define MEMRT_IMPORTS_NUMPY
#include "ndarray.h"

#include <memrt/import.h>

#include "adoption.h"
#include "arrow.h"
#include "array.h"
#include "buffer.h"
#include "chain.h"
#include "container.h"
#include "cuda.h"
#include "errors.h"
#include "failure.h"
#include "frames.h"
#include "handler.h"
#include "holders.h"
#include "intake.h"
#include "live.h"
#include "lookup.h"
#include "meminfo.h"
#include "owner.h"
#include "policy.h"
#include "process.h"
#include "recording.h"
#include "retention.h"
#include "scope.h"
#include "shortage.h"
#include "stats.h"
#include "symbols.h"
#include "tensor.h"
#include "thread.h"
#include "trace.h"

memrt_binding_t memrt__binding;

static int refuse_subinterpreter(void)
{
    if (PyInterpreterState_Get() == PyInterpreterState_Main()) {
        return 0;
    }
    PyErr_SetString(PyExc_ImportError,
                    "memrt can be imported in the main interpreter only, like NumPy; the C library "
                    "works in all of them");
    return -1;
}

/// What the module keeps for the process belonged to the Python that was finalized.
static int refuse_second_python(void)
{
    if (!memrt__owner_has_ended()) {
        return 0;
    }
    PyErr_SetString(PyExc_ImportError,
                    "memrt, like NumPy, cannot be imported again in a process where a Python that "
                    "had it was finalized: import it in one Python only; the C library goes on "
                    "working");
    return -1;
}

/// The loader takes a libmemrt that the process has already for the package's own: by a program
/// that links one, or by another copy of the package. A newer one serves, an older one lacks slots.
static int refuse_older_library(const memrt_api_t *api)
{
    if (api->struct_size >= sizeof(memrt_api_t)) {
        return 0;
    }
    PyErr_Format(PyExc_ImportError,
                 "this process had libmemrt %s loaded already, which is older than this package: "
                 "give the program that loads it the libmemrt of this package, or a newer one",
                 api->version);
    return -1;
}

static int get_table(void)
{
    const char *why = "the library gives no reason";
    memrt__binding.api = memrt_get_api(MEMRT_ABI_MAJOR, &why);
    if (memrt__binding.api == NULL) {
        PyErr_Format(PyExc_ImportError, "libmemrt does not fit this package: %s", why);
        return -1;
    }
    return refuse_older_library(memrt__binding.api);
}

static int import_numpy(void)
{
    import_array1(-1);
    return 0;
}

static int add_functions(PyObject *module)
{
    PyMethodDef *const groups[] = {
        memrt__adoption_methods,  memrt__array_methods,     memrt__buffer_methods,
        memrt__failure_methods,   memrt__handler_methods,   memrt__live_methods,
        memrt__lookup_methods,    memrt__owner_methods,     memrt__policy_methods,
        memrt__process_methods,   memrt__scope_methods,     memrt__stats_methods,
        memrt__thread_methods,    memrt__holders_methods,   memrt__container_methods,
        memrt__retention_methods, memrt__frames_methods,    memrt__symbols_methods,
        memrt__cuda_methods,      memrt__intake_methods,    memrt__arrow_methods,
        memrt__tensor_methods,    memrt__recording_methods,
    };
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        if (PyModule_AddFunctions(module, groups[i]) < 0) {
            return -1;
        }
    }
    return 0;
}

static int add_table(PyObject *module)
{
    void *table = (void *)(uintptr_t)memrt__api();
    PyObject *capsule = PyCapsule_New(table, MEMRT_API_CAPSULE, NULL);
    int result = capsule != NULL ? PyModule_AddObjectRef(module, "api", capsule) : -1;
    Py_XDECREF(capsule);
    return result;
}

static int execute(PyObject *module)
{
    if (refuse_subinterpreter() < 0 || refuse_second_python() < 0 || get_table() < 0 ||
        import_numpy() < 0 || memrt__chain_setup() < 0 || memrt__shortage_setup(module) < 0 ||
        memrt__handler_setup() < 0 || memrt__errors_setup(module) < 0 ||
        memrt__scope_setup(module) < 0 || memrt__meminfo_setup(module) < 0 ||
        memrt__tensor_setup(module) < 0 || memrt__intake_setup() < 0 || add_functions(module) < 0 ||
        add_table(module) < 0) {
        return -1;
    }
    memrt__trace_setup();
    memrt__frames_setup();
    memrt__symbols_setup();
    return memrt__owner_setup(module);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "memrt._memrt",
    .m_doc = "The compiled part of memrt. Use the package, which documents and checks more.",
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__memrt(void)
{
    return PyModuleDef_Init(&definition);
}
