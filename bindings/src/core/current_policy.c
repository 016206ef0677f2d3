#include "core/current_policy.h"

#include "core/caller_policy.h"
#include "core/current_scope.h"
#include "core/mem_handler.h"
#include "core/policy_record.h"
#include "support/errors.h"
#include "support/ndarray.h"

static PyObject *attribute; ///< interned name of the handler attribute of memrt.Policy

/// Return the handler in force in this context if it leads to memrt, otherwise the default policy's
/// handler in the scope of this context. New reference, or NULL with an exception.
static PyObject *get_current_handler(void)
{
    PyObject *handler = PyDataMem_GetHandler();
    if (handler == NULL ||
        (handler != PyDataMem_DefaultHandler && memrt__handler_is_memrt(handler))) {
        return handler;
    }
    Py_DECREF(handler);
    return memrt__current_scope_handler(Py_NewRef(memrt__binding.default_handler));
}

/// Keep a handler of a scope alive until the next lookup of the thread in a scope. Without a GIL
/// another thread may drop the handler from the entry of the scope. -1 with an exception.
static int keep_handler(PyObject *handler)
{
#ifdef Py_GIL_DISABLED
    PyObject *entries = memrt__current_scope_entries();
    if (entries == NULL || PyTuple_GET_SIZE(entries) == 0) {
        return 0; /* the context holds the handler */
    }
    PyObject *dict = PyThreadState_GetDict(); /* borrowed; NULL: no memory */
    return dict != NULL ? PyDict_SetItemString(dict, "memrt.handler", handler) : -1;
#else
    (void)handler;
    return 0;
#endif
}

/// Return the policy of the handler in force, and record the policy for the mapping `variables`.
/// The record borrows the policy, so a handler that another extension made is not recorded.
static memrt_policy_t *find_policy(PyObject *variables)
{
    memrt_policy_t *policy = NULL;
    PyObject *handler = get_current_handler();
    if (handler != NULL && keep_handler(handler) == 0) {
        policy = memrt__handler_policy(handler);
        if (memrt__handler_is_own(handler)) {
            memrt__policy_record_write(variables, policy);
        }
    }
    Py_XDECREF(handler);
    PyErr_Clear();
    return policy;
}

int memrt__policy_is_default(const memrt_policy_t *policy)
{
    return policy == NULL || policy == memrt__handler_policy(memrt__binding.default_handler);
}

/// Return the policy to use in place of the policy of a context. In a chunk of a parallel loop, the
/// policy of the launch stands in for the default policy. The thread then has no valid record,
/// because records only know contexts.
static memrt_policy_t *apply_chunk(memrt_policy_t *policy)
{
    memrt_policy_t *of_launch = memrt__caller_chunk_policy();
    if (of_launch == NULL) {
        return policy;
    }
    memrt__policy_record_forget();
    return memrt__policy_is_default(policy) ? of_launch : policy;
}

/// The policy outlives the dropped references: the context, or the entry of the scope, or without a
/// GIL the thread, still holds the handler; a chunk holds its policy.
memrt_policy_t *memrt__current_policy(void)
{
    memrt_policy_t *policy;
    PyObject *variables = memrt__policy_record_variables();
    if (!memrt__policy_record_find(variables, &policy)) {
        policy = find_policy(variables);
    }
    Py_XDECREF(variables);
    return apply_chunk(policy);
}

PyObject *memrt__current_handler_for(PyObject *policy)
{
    if (policy == Py_None) {
        return get_current_handler();
    }
    PyObject *handler =
        PyCapsule_CheckExact(policy) ? Py_NewRef(policy) : PyObject_GetAttr(policy, attribute);
    if (handler != NULL && memrt__handler_is_memrt(handler)) {
        return memrt__current_scope_handler(handler);
    }
    if (handler != NULL || PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Format(PyExc_TypeError, "policy must be a memrt.Policy or None, got %.200s",
                     Py_TYPE(policy)->tp_name);
    }
    Py_XDECREF(handler);
    return NULL;
}

int memrt__current_policy_setup(void)
{
    if (attribute == NULL) {
        attribute = PyUnicode_InternFromString("_handler");
    }
    return attribute != NULL ? 0 : -1;
}

/// Restore the previous handler after a failed change. If memory for the token runs out, CPython
/// has set the context variable already.
static void restore_handler(PyObject *before)
{
    memrt_pending_t pending;
    memrt__pending_save(&pending);
    Py_XDECREF(PyDataMem_SetHandler(before));
    PyErr_Clear();
    memrt__pending_restore(&pending);
}

/// Put `handler` in force and return the previous handler. On failure returns NULL, and the
/// previous handler is in force.
static PyObject *replace_handler(PyObject *handler)
{
    PyObject *before = PyDataMem_GetHandler();
    if (before == NULL) { /* GCOV_EXCL_BR_LINE: NumPy's context variable has a default */
        return NULL;
    }
    PyObject *replaced = PyDataMem_SetHandler(handler);
    if (replaced == NULL) {
        restore_handler(before);
    }
    Py_DECREF(before);
    return replaced;
}

static PyObject *set_handler(PyObject *module, PyObject *handler)
{
    (void)module;
    if (!PyCapsule_IsValid(handler, MEMRT_HANDLER_CAPSULE)) {
        PyErr_SetString(PyExc_TypeError, "handler must be a capsule named 'mem_handler'");
        return NULL;
    }
    PyObject *before = replace_handler(handler);
    if (before != NULL && handler != memrt__binding.default_handler &&
        memrt__handler_is_memrt(handler)) {
        memrt__policy_record_note_choice();
    }
    return before;
}

static PyObject *get_handler(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyDataMem_GetHandler();
}

static PyObject *get_scoped_handler(PyObject *module, PyObject *handler)
{
    (void)module;
    return memrt__current_scope_handler(Py_NewRef(handler));
}

PyMethodDef memrt__current_policy_methods[] = {
    {"set_handler", set_handler, METH_O,
     "set_handler(handler) -> handler\n\n"
     "Put `handler` in force for NumPy in the current context. Return the previous handler."},
    {"get_handler", get_handler, METH_NOARGS,
     "get_handler() -> handler\n\nReturn the handler that NumPy uses in the current context."},
    {"in_scope", get_scoped_handler, METH_O,
     "in_scope(handler) -> handler\n\n"
     "Return the handler of the same policy in the scope of this context. Outside of scopes,\n"
     "return `handler`."},
    {NULL, NULL, 0, NULL},
};
