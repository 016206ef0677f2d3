/// The extension module memrt._memrt: checks of the environment, import of NumPy, and registration
/// of all functions and types.

#define MEMRT_IMPORTS_NUMPY
#include "support/ndarray.h"

#include <memrt/import.h>

#include "access/cold.h"
#include "access/freeze.h"
#include "access/unique.h"
#include "allocators/adaptor.h"
#include "allocators/allocator_capsule.h"
#include "allocators/fault_injection.h"
#include "allocators/file.h"
#include "allocators/placement.h"
#include "buffer/buffer_type.h"
#include "callbacks/block_hooks.h"
#include "callbacks/pressure.h"
#include "callbacks/reclaim.h"
#include "core/base_lookup.h"
#include "core/cpython_layout.h"
#include "core/current_policy.h"
#include "core/current_scope.h"
#include "core/interpreter.h"
#include "core/mem_handler.h"
#include "core/owner.h"
#include "core/tracemalloc.h"
#include "interop/arrow_export.h"
#include "interop/arrow_import.h"
#include "interop/cuda.h"
#include "interop/cuda_buffer.h"
#include "interop/dlpack_c_api.h"
#include "interop/dlpack_import.h"
#include "interop/tensor_type.h"
#include "observe/base_chain.h"
#include "observe/container_slot.h"
#include "observe/event_trace.h"
#include "observe/frames.h"
#include "observe/holders.h"
#include "observe/leak_survey.h"
#include "observe/live.h"
#include "observe/retention.h"
#include "observe/site_recorder.h"
#include "support/errors.h"
#include "support/oom_error.h"
#include "support/process_info.h"
#include "support/process_memory.h"
#include "support/run_program.h"
#include "support/threads.h"
#include "tasks/scoped_task.h"
#include "tasks/task_account.h"
#include "types/adopt.h"
#include "types/alloc.h"
#include "types/array.h"
#include "types/array_view.h"
#include "types/limit.h"
#include "types/meminfo_type.h"
#include "types/peak.h"
#include "types/policy.h"
#include "types/scope.h"
#include "types/snapshot.h"
#include "types/stats.h"
#include "types/symbols.h"
#include "types/volatile.h"

memrt_binding_t memrt__binding;

static int refuse_subinterpreter(void)
{
    if (PyInterpreterState_Get() == PyInterpreterState_Main()) {
        return 0;
    }
    PyErr_SetString(PyExc_ImportError, "memrt can be imported in the main interpreter only, like "
                                       "NumPy; the C library works in all interpreters");
    return -1;
}

/// Refuse a second Python. The process-wide state of the module belonged to the Python that was
/// finalized.
static int refuse_second_python(void)
{
    if (!memrt__interpreter_has_ended()) {
        return 0;
    }
    PyErr_SetString(
        PyExc_ImportError,
        "memrt, like NumPy, cannot be imported again after a Python with memrt was finalized in "
        "the process: import memrt in one Python only; the C library continues to work");
    return -1;
}

/// Refuse an older library. If the process already has a libmemrt, from a program that links it or
/// another copy of the package, the loader reuses that library. A newer library works; an older
/// library lacks slots.
static int refuse_older_library(const memrt_api_t *api)
{
    if (api->struct_size >= sizeof(memrt_api_t)) {
        return 0;
    }
    PyErr_Format(PyExc_ImportError,
                 "libmemrt %s in the process is older than the package: load libmemrt of the "
                 "package, or a newer libmemrt",
                 api->version);
    return -1;
}

static int load_api_table(void)
{
    const char *why = "no reason given";
    memrt__binding.api = memrt_get_api(MEMRT_ABI_MAJOR, &why);
    if (memrt__binding.api == NULL) {
        PyErr_Format(PyExc_ImportError, "libmemrt is not compatible with the package: %s", why);
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
        memrt__adoption_methods,       memrt__array_methods,          memrt__array_view_methods,
        memrt__buffer_methods,         memrt__failure_methods,        memrt__handler_methods,
        memrt__current_policy_methods, memrt__current_scope_methods,  memrt__live_methods,
        memrt__lookup_methods,         memrt__owner_methods,          memrt__policy_methods,
        memrt__process_methods,        memrt__scope_methods,          memrt__stats_methods,
        memrt__thread_methods,         memrt__holders_methods,        memrt__survey_methods,
        memrt__container_methods,      memrt__retention_methods,      memrt__frames_methods,
        memrt__symbols_methods,        memrt__cuda_methods,           memrt__cuda_buffer_methods,
        memrt__dlpack_import_methods,  memrt__arrow_export_methods,   memrt__arrow_import_methods,
        memrt__tensor_methods,         memrt__recording_methods,      memrt__program_methods,
        memrt__peak_methods,           memrt__process_memory_methods, memrt__limit_methods,
        memrt__reclaim_methods,        memrt__pressure_methods,       memrt__block_hook_methods,
        memrt__volatile_methods,       memrt__snapshot_methods,       memrt__allocator_methods,
        memrt__adaptor_methods,        memrt__scoped_task_methods,    memrt__placement_methods,
        memrt__unique_methods,         memrt__freeze_methods,         memrt__file_methods,
        memrt__cold_methods,
    };
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        if (PyModule_AddFunctions(module, groups[i]) < 0) {
            return -1;
        }
    }
    return 0;
}

static int add_api_capsule(PyObject *module)
{
    void *table = (void *)(uintptr_t)memrt__api();
    PyObject *capsule = PyCapsule_New(table, MEMRT_API_CAPSULE, NULL);
    int result = capsule != NULL ? PyModule_AddObjectRef(module, "api", capsule) : -1;
    Py_XDECREF(capsule);
    return result;
}

static int module_exec(PyObject *module)
{
    memrt__interpreter_setup();
    memrt__cpython_layout_setup();
    if (refuse_subinterpreter() < 0 || refuse_second_python() < 0 || load_api_table() < 0 ||
        import_numpy() < 0 || memrt__base_chain_setup() < 0 || memrt__oom_error_setup(module) < 0 ||
        memrt__handler_setup() < 0 || memrt__current_policy_setup(module) < 0 ||
        memrt__errors_setup(module) < 0 || memrt__current_scope_setup(module) < 0 ||
        memrt__scoped_task_setup() < 0 || memrt__task_account_setup(module) < 0 ||
        memrt__meminfo_type_setup(module) < 0 || memrt__tensor_setup(module) < 0 ||
        memrt__buffer_setup(module) < 0 || memrt__dlpack_c_api_setup() < 0 ||
        memrt__dlpack_import_setup() < 0 || add_functions(module) < 0 ||
        add_api_capsule(module) < 0) {
        return -1;
    }
    memrt__interpreter_set_work(memrt__owner_drain);
    memrt__tracemalloc_setup();
    memrt__site_recorder_setup();
    memrt__frames_setup();
    memrt__symbols_setup();
    return memrt__owner_setup(module);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, module_exec},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "memrt._memrt",
    .m_doc = "Compiled part of memrt. Use the package, which has more documentation and checks.",
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__memrt(void)
{
    return PyModuleDef_Init(&definition);
}
