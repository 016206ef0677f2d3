/* Drop-in replacement for numba.core.runtime._nrt_python: the same attributes, on the one
   libmemrt of the process. Python finds this second module by its name in the file of the first
   module, so both modules share all static state. */

#include "core/owner.h"
#include "numba/alloc.h"
#include "numba/array.h"
#include "numba/callers.h"
#include "numba/scratch.h"
#include "support/errors.h"
#include "support/free_threading.h"
#include "types/nrt_meminfo.h"

/// NRT's statistics switch, state of the process. memrt always counts. Counts made while the switch
/// is off are subtracted from the figures that Numba sees.
static int stats_on;
static memrt_stats_t counts_while_off; ///< counts made while off, up to the last switch to on
static memrt_stats_t counts_at_off;    ///< counters at the last switch to off

static int read_counters(memrt_stats_t *out)
{
    *out = (memrt_stats_t){.struct_size = sizeof(*out)};
    memrt__owner_drain();
    memrt_status_t status = memrt__api()->stats_read(NULL, out);
    if (status != MEMRT_OK) {
        memrt__raise(status, "cannot read the statistics");
        return -1;
    }
    return 0;
}

static PyObject *memsys_use_cpython_allocator(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    Py_RETURN_NONE; /* Numba calls this for tracemalloc; memrt's memory is in tracemalloc anyway. */
}

static PyObject *memsys_shutdown(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    memrt__nrt_shutdown();
    Py_RETURN_NONE;
}

static PyObject *memsys_stats_enabled(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyBool_FromLong(MEMRT_SHARED_READ(stats_on));
}

/// Switch the statistics on. -1 with an exception.
static int enable_stats(void)
{
    memrt_stats_t now;
    if (stats_on) {
        return 0;
    }
    if (read_counters(&now) < 0) {
        return -1;
    }
    counts_while_off.alloc += now.alloc - counts_at_off.alloc;
    counts_while_off.free += now.free - counts_at_off.free;
    counts_while_off.mi_alloc += now.mi_alloc - counts_at_off.mi_alloc;
    counts_while_off.mi_free += now.mi_free - counts_at_off.mi_free;
    MEMRT_SHARED_WRITE(stats_on, 1);
    return 0;
}

/// Switch the statistics off. -1 with an exception.
static int disable_stats(void)
{
    if (stats_on && read_counters(&counts_at_off) < 0) {
        return -1;
    }
    MEMRT_SHARED_WRITE(stats_on, 0);
    return 0;
}

static PyObject *memsys_enable_stats(PyObject *module, PyObject *unused)
{
    int result;
    (void)module;
    (void)unused;
    MEMRT_BEGIN_PROCESS_STATE();
    result = enable_stats();
    MEMRT_END_PROCESS_STATE();
    return result == 0 ? Py_NewRef(Py_None) : NULL;
}

static PyObject *memsys_disable_stats(PyObject *module, PyObject *unused)
{
    int result;
    (void)module;
    (void)unused;
    MEMRT_BEGIN_PROCESS_STATE();
    result = disable_stats();
    MEMRT_END_PROCESS_STATE();
    return result == 0 ? Py_NewRef(Py_None) : NULL;
}

static uint64_t read_counter(const memrt_stats_t *stats, size_t offset)
{
    return *(const uint64_t *)((const char *)stats + offset);
}

/// Compute a counter by its offset in memrt_stats_t. -1 with RuntimeError while the switch is off.
static int compute_counter(size_t offset, uint64_t *out)
{
    memrt_stats_t now;
    if (!stats_on) {
        PyErr_SetString(PyExc_RuntimeError, "NRT stats are disabled.");
        return -1;
    }
    if (read_counters(&now) < 0) {
        return -1;
    }
    *out = read_counter(&now, offset) - read_counter(&counts_while_off, offset);
    return 0;
}

static PyObject *build_counter(size_t offset)
{
    uint64_t counter;
    int result;
    MEMRT_BEGIN_PROCESS_STATE();
    result = compute_counter(offset, &counter);
    MEMRT_END_PROCESS_STATE();
    return result == 0 ? PyLong_FromUnsignedLongLong(counter) : NULL;
}

#define COUNTER(NAME)                                                                              \
    static PyObject *memsys_get_stats_##NAME(PyObject *module, PyObject *none)                     \
    {                                                                                              \
        (void)module;                                                                              \
        (void)none;                                                                                \
        return build_counter(offsetof(memrt_stats_t, NAME));                                       \
    }

COUNTER(alloc)
COUNTER(free)
COUNTER(mi_alloc)
COUNTER(mi_free)

static PyObject *meminfo_new(PyObject *module, PyObject *args)
{
    PyObject *address, *owner;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O:meminfo_new", &PyLong_Type, &address, &owner)) {
        return NULL;
    }
    void *data = PyLong_AsVoidPtr(address);
    if (data == NULL && PyErr_Occurred()) {
        return NULL;
    }
    memrt_meminfo_t *mi = memrt__nrt_meminfo_new_from_pyobject(data, owner);
    return mi == NULL ? NULL : PyLong_FromVoidPtr(mi);
}

/// Allocate a MemInfo with `allocate` and return its address. Numba raises its own MemoryError for
/// address 0.
static PyObject *allocate_address(memrt_meminfo_t *(*allocate)(size_t size), PyObject *args)
{
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "n", &size)) {
        return NULL;
    }
    return PyLong_FromVoidPtr(size < 0 ? NULL : allocate((size_t)size));
}

static PyObject *meminfo_alloc(PyObject *module, PyObject *args)
{
    (void)module;
    return allocate_address(memrt__nrt_alloc, args);
}

static PyObject *meminfo_alloc_safe(PyObject *module, PyObject *args)
{
    (void)module;
    return allocate_address(memrt__nrt_alloc_safe, args);
}

static PyObject *wrap_parallel_for(PyObject *module, PyObject *address)
{
    (void)module;
    void *layer = PyLong_AsVoidPtr(address);
    if (layer == NULL) {
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "address must not be 0");
    }
    return PyLong_FromVoidPtr(memrt__nrt_wrap_parallel_for(layer));
}

static PyMethodDef functions[] = {
    {"memsys_use_cpython_allocator", memsys_use_cpython_allocator, METH_NOARGS, NULL},
    {"memsys_shutdown", memsys_shutdown, METH_NOARGS, NULL},
    {"memsys_stats_enabled", memsys_stats_enabled, METH_NOARGS, NULL},
    {"memsys_enable_stats", memsys_enable_stats, METH_NOARGS, NULL},
    {"memsys_disable_stats", memsys_disable_stats, METH_NOARGS, NULL},
    {"memsys_get_stats_alloc", memsys_get_stats_alloc, METH_NOARGS, NULL},
    {"memsys_get_stats_free", memsys_get_stats_free, METH_NOARGS, NULL},
    {"memsys_get_stats_mi_alloc", memsys_get_stats_mi_alloc, METH_NOARGS, NULL},
    {"memsys_get_stats_mi_free", memsys_get_stats_mi_free, METH_NOARGS, NULL},
    {"meminfo_new", meminfo_new, METH_VARARGS, NULL},
    {"meminfo_alloc", meminfo_alloc, METH_VARARGS, NULL},
    {"meminfo_alloc_safe", meminfo_alloc_safe, METH_VARARGS, NULL},
    {"wrap_parallel_for", wrap_parallel_for, METH_O,
     "wrap_parallel_for(address) -> int\n\n"
     "Return the function that runs parallel loops by the function of a threading layer."},
    {"scratch_policy", memrt__nrt_scratch_policy, METH_O,
     "scratch_policy(handler) -> int\n\n"
     "Return the address of the policy of a memrt handler, for blocks of compiled code."},
    {NULL, NULL, 0, NULL},
};

/* --- c_helpers: function names and addresses for Numba's linker. --- */

static const memrt_api_t *get_api(void)
{
    return memrt__api();
}

typedef void (*any_fn)(void);

typedef struct helper {
    const char *name;
    any_fn function;
} helper_t;

#define HELPER(NAME, FUNCTION) {NAME, (any_fn)(FUNCTION)}

/// Add a helper by name and address. -1 with an exception.
static int add_helper(PyObject *helpers, const char *name, any_fn function)
{
    PyObject *address = PyLong_FromVoidPtr(*(void **)&function);
    int result = address != NULL ? PyDict_SetItemString(helpers, name, address) : -1;
    Py_XDECREF(address);
    return result;
}

/// Fill the dict. Runs after the import of memrt, since some helpers are functions of the table. -1
/// with an exception.
static int fill_helpers(PyObject *helpers)
{
    const memrt_api_t *api = memrt__api();
    const helper_t all[] = {
        HELPER("adapt_ndarray_from_python", memrt__nrt_adapt_ndarray_from_python),
        HELPER("adapt_ndarray_to_python_acqref", memrt__nrt_adapt_ndarray_to_python_acqref),
        HELPER("adapt_buffer_from_python", memrt__nrt_adapt_buffer_from_python),
        HELPER("meminfo_new_from_pyobject", memrt__nrt_meminfo_new_from_pyobject),
        HELPER("meminfo_as_pyobject", memrt__nrt_meminfo_object),
        HELPER("meminfo_from_pyobject", memrt__nrt_meminfo_from_pyobject),
        HELPER("MemInfo_alloc", memrt__nrt_alloc),
        HELPER("MemInfo_alloc_safe", memrt__nrt_alloc_safe),
        HELPER("MemInfo_alloc_aligned", memrt__nrt_alloc_aligned),
        HELPER("MemInfo_alloc_safe_aligned", memrt__nrt_alloc_safe_aligned),
        HELPER("MemInfo_alloc_safe_aligned_external", memrt__nrt_alloc_safe_aligned_external),
        HELPER("_nrt_get_sample_external_allocator", memrt__nrt_sample_external_allocator),
        HELPER("MemInfo_alloc_dtor", memrt__nrt_alloc_dtor),
        HELPER("MemInfo_alloc_dtor_safe", memrt__nrt_alloc_dtor_safe),
        HELPER("MemInfo_call_dtor", api->call_dtor),
        HELPER("MemInfo_new_varsize", memrt__nrt_new_varsize),
        HELPER("MemInfo_new_varsize_dtor", memrt__nrt_new_varsize_dtor),
        HELPER("MemInfo_varsize_alloc", api->resizable_alloc),
        HELPER("MemInfo_varsize_realloc", api->resizable_realloc),
        HELPER("MemInfo_varsize_free", api->resizable_free),
        HELPER("MemInfo_data", api->get_data),
        HELPER("MemInfo_release", api->release),
        HELPER("Allocate", memrt__nrt_allocate),
        HELPER("Free", memrt__nrt_free),
        HELPER("get_api", get_api),
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (add_helper(helpers, all[i].name, all[i].function) < 0) {
            return -1;
        }
    }
    return 0;
}

/// Fill the dict of functions that blocks of compiled code call. -1 with an exception.
static int fill_scratch_symbols(PyObject *symbols)
{
    return add_helper(symbols, "memrt_scratch_enter", (any_fn)memrt__nrt_scratch_enter) < 0
               ? -1
               : add_helper(symbols, "memrt_scratch_leave", (any_fn)memrt__nrt_scratch_leave);
}

/// Fill the dict of functions that replace symbols of CPython in compiled code. -1 with an
/// exception.
static int fill_thread_symbols(PyObject *symbols)
{
    return add_helper(symbols, "PyEval_SaveThread", (any_fn)memrt__nrt_save_thread) < 0
               ? -1
               : add_helper(symbols, "PyEval_RestoreThread", (any_fn)memrt__nrt_restore_thread);
}

/// Add a dict of names and addresses to the module. -1 with an exception.
static int add_dict(PyObject *module, const char *name, int (*fill)(PyObject *dict))
{
    PyObject *dict = PyDict_New();
    int result = dict != NULL ? fill(dict) : -1;
    if (result == 0) {
        result = PyModule_AddObjectRef(module, name, dict);
    }
    Py_XDECREF(dict);
    return result;
}

static int module_exec(PyObject *module)
{
    PyObject *first = PyImport_ImportModule("memrt._memrt");
    Py_XDECREF(first);
    if (first == NULL || memrt__nrt_meminfo_setup(module) < 0 ||
        add_dict(module, "c_helpers", fill_helpers) < 0 ||
        add_dict(module, "thread_symbols", fill_thread_symbols) < 0 ||
        add_dict(module, "scratch_symbols", fill_scratch_symbols) < 0) {
        return -1;
    }
    return PyModule_AddStringConstant(module, "memrt_version", memrt__api()->version);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, module_exec},
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_nrt_python",
    .m_doc = "Runtime of Numba, implemented by memrt.",
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__nrt_python(void);

PyMODINIT_FUNC PyInit__nrt_python(void)
{
    return PyModuleDef_Init(&definition);
}
