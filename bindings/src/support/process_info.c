#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include "support/process_info.h"

#include <dlfcn.h>

#include <memrt/import.h>

#include "support/arguments.h"
#include "support/errors.h"
#include "support/free_threading.h"
#include "support/process_memory.h"

static int append_option(PyObject *list, const memrt_option_t *option)
{
    PyObject *row = Py_BuildValue("(sNs)", option->name, memrt__text(option->value), option->help);
    int result = row != NULL ? PyList_Append(list, row) : -1;
    Py_XDECREF(row);
    return result;
}

static PyObject *list_options(PyObject *module, PyObject *unused)
{
    memrt_option_t option;
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && memrt__api()->option(i, &option); i++) {
        if (append_option(list, &option) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static int append_warning(PyObject *list, const char *text)
{
    PyObject *warning = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    int result = warning != NULL ? PyList_Append(list, warning) : -1;
    Py_XDECREF(warning);
    return result;
}

/// Return the warnings that were not returned yet. Each warning is reported once per process, also
/// if the package is loaded again.
static PyObject *take_option_warnings(void)
{
    static size_t reported;
    const char *text;
    PyObject *list = PyList_New(0);
    while (list != NULL && (text = memrt__api()->option_warning(reported)) != NULL) {
        if (append_warning(list, text) < 0) {
            Py_CLEAR(list);
        } else {
            reported++;
        }
    }
    return list;
}

static PyObject *list_new_option_warnings(PyObject *module, PyObject *unused)
{
    PyObject *list;
    (void)module;
    (void)unused;
    MEMRT_BEGIN_PROCESS_STATE();
    list = take_option_warnings();
    MEMRT_END_PROCESS_STATE();
    return list;
}

static PyObject *get_library_path(PyObject *module, PyObject *unused)
{
    Dl_info info;
    (void)module;
    (void)unused;
    /* GCOV_EXCL_BR_START: the loader knows the file of every library */
    if (dladdr((const void *)memrt__api(), &info) == 0 || info.dli_fname == NULL) {
        /* GCOV_EXCL_BR_STOP */
        PyErr_SetString(PyExc_RuntimeError, "cannot find the file of libmemrt");
        return NULL;
    }
    return PyUnicode_DecodeFSDefault(info.dli_fname);
}

static PyObject *release_unused_memory(PyObject *module, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"everything", NULL};
    int everything = 0;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$p:release_unused", names, &everything)) {
        return NULL;
    }
    size_t bytes = memrt__api()->release_unused();
    if (everything) {
        Py_BEGIN_ALLOW_THREADS;
        memrt__trim_malloc();
        Py_END_ALLOW_THREADS;
    }
    return PyLong_FromSize_t(bytes);
}

static PyObject *get_features(PyObject *module, PyObject *unused)
{
    const memrt_api_t *api = memrt__api();
    (void)module;
    (void)unused;
    return Py_BuildValue("{sssIsIsnsNsNsNsI}", "version", api->version, "abi_major",
                         (unsigned)api->abi_major, "abi_minor", (unsigned)api->abi_minor,
                         "table_bytes", (Py_ssize_t)api->struct_size, "checking",
                         PyBool_FromLong((api->features & MEMRT_FEATURE_CHECKING) != 0), "counters",
                         PyBool_FromLong((api->features & MEMRT_FEATURE_COUNTERS) != 0), "probes",
                         PyBool_FromLong((api->features & MEMRT_FEATURE_PROBES) != 0),
                         "tracemalloc_domain", MEMRT_TRACEMALLOC_DOMAIN);
}

static PyObject *set_option(PyObject *module, PyObject *args)
{
    const char *name, *value;
    char why[MEMRT__WHY_MAX];
    memrt_status_t status;
    (void)module;
    if (!PyArg_ParseTuple(args, "ss:set_option", &name, &value)) {
        return NULL;
    }
    /* The purger may have to start or stop, and memory may be given back. */
    Py_BEGIN_ALLOW_THREADS;
    status = memrt__api()->option_set(name, value, why, sizeof(why));
    Py_END_ALLOW_THREADS;
    if (status != MEMRT_OK) {
        return memrt__raise_why(status, why);
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(release_unused_doc, "release_unused(*, everything=False)\n"
                                 "--\n"
                                 "\n"
                                 "Give cached memory back to the system.\n"
                                 "\n"
                                 "Parameters\n"
                                 "----------\n"
                                 "everything : bool, default False\n"
                                 "    Whether also to give back the free memory of the C\n"
                                 "    library's malloc, by ``malloc_trim``. With another malloc\n"
                                 "    than glibc's, no effect.\n"
                                 "\n"
                                 "Returns\n"
                                 "-------\n"
                                 "int\n"
                                 "    Bytes that memrt gave back. malloc does not report bytes.\n"
                                 "\n"
                                 "Notes\n"
                                 "-----\n"
                                 "Threads: memory in the caches of other threads stays there.\n"
                                 "\n"
                                 "Examples\n"
                                 "--------\n"
                                 ">>> import memrt\n"
                                 ">>> mi = memrt.alloc(8_000_000)\n"
                                 ">>> del mi\n"
                                 ">>> memrt.release_unused() >= 0\n"
                                 "True");

PyMethodDef memrt__process_methods[] = {
    {"options", list_options, METH_NOARGS,
     "options() -> list of (name, value, help)\n\nReturn the MEMRT_* options in force."},
    {"set_option", set_option, METH_VARARGS,
     "set_option(name, value)\n\nSet an option of the process from now on."},
    {"take_option_warnings", list_new_option_warnings, METH_NOARGS,
     "take_option_warnings() -> list of str\n\n"
     "Return the warnings about MEMRT_* variables, each warning once per process."},
    {"library_path", get_library_path, METH_NOARGS,
     "library_path() -> str\n\nReturn the path of the loaded libmemrt."},
    {"release_unused", MEMRT_KEYWORDS(release_unused_memory), release_unused_doc},
    {"features", get_features, METH_NOARGS,
     "features() -> dict\n\nReturn the version, ABI and features of the loaded library."},
    {NULL, NULL, 0, NULL},
};
