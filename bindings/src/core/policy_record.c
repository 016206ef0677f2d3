#include "core/policy_record.h"

#include "support/errors.h"
#include "support/ndarray.h"

MEMRT_THREAD_LOCAL memrt_policy_record_t memrt__policy_record;
size_t memrt__policy_record_generation;
const memrt_variable_cache_t *memrt__handler_cache, *memrt__entries_cache;

void memrt__policy_record_write(PyObject *handler, PyObject *entries, memrt_policy_t *policy)
{
    if (memrt__handler_cache != NULL) {
        memrt__policy_record =
            (memrt_policy_record_t){.thread = memrt__attached_thread_state(),
                                    .generation = memrt__policy_record_generation,
                                    .handler = handler,
                                    .entries = entries,
                                    .policy = policy};
    }
}

void memrt__policy_record_drop(void)
{
    memrt__policy_record_generation++;
}

void memrt__policy_record_prepare(void)
{
    PyObject *handler = memrt__handler_cache != NULL ? PyDataMem_GetHandler() : NULL;
    if (handler == PyDataMem_DefaultHandler &&
        !memrt__policy_record_is_cached(memrt__handler_cache, PyThreadState_Get(), handler)) {
        Py_XDECREF(PyDataMem_SetHandler(handler));
    }
    Py_XDECREF(handler);
    PyErr_Clear();
}

/// Return the variable that has `value` in a context, as a new reference, or NULL with or without
/// an exception.
static PyObject *find_variable_with(PyObject *context, PyObject *value)
{
    PyObject *variables = PySequence_List(context);
    PyObject *found = NULL;
    for (Py_ssize_t i = 0; variables != NULL && found == NULL && i < PyList_GET_SIZE(variables);
         i++) {
        PyObject *variable = PyList_GET_ITEM(variables, i);
        PyObject *has = PyObject_GetItem(context, variable);
        found = has == value ? Py_NewRef(variable) : NULL;
        Py_XDECREF(has);
    }
    Py_XDECREF(variables);
    return found;
}

/// Return NumPy's context variable as a new reference, or NULL with or without an exception: in a
/// copy of the current context, the variable that a change of the handler sets.
static PyObject *find_numpy_variable(PyObject *context)
{
    if (PyContext_Enter(context) < 0) { /* GCOV_EXCL_BR_LINE: the context is new */
        return NULL;
    }
    PyObject *before = PyDataMem_SetHandler(memrt__binding.default_handler);
    PyObject *variable =
        before != NULL ? find_variable_with(context, memrt__binding.default_handler) : NULL;
    Py_XDECREF(before);
    (void)PyContext_Exit(context); /* cannot fail for the entered context */
    return variable;
}

void memrt__policy_record_setup(PyObject *scopes)
{
    if (memrt__variable_cache_offset == 0 || memrt__handler_cache != NULL) {
        return;
    }
    PyObject *context = PyContext_CopyCurrent();
    PyObject *variable = context != NULL ? find_numpy_variable(context) : NULL;
    Py_XDECREF(context);
    PyErr_Clear();
    if (variable != NULL) { /* the reference is kept forever */
        memrt__entries_cache = memrt__variable_cache(scopes);
        memrt__handler_cache = memrt__variable_cache(variable);
    }
}
