#include "core/current_policy.h"

#include "core/caller_policy.h"
#include "core/current_scope.h"
#include "core/mem_handler.h"
#include "core/policy_record.h"
#include "support/errors.h"
#include "support/ndarray.h"

#define KEPT_HANDLER_KEY "memrt.handler" /* in the dictionary of a thread state */

PyObject *memrt__handler_stack_variable;

static PyObject *handler_name; ///< interned name of the handler attribute of memrt.Policy

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

/// Keep a handler of a scope alive until the next lookup of the thread in a scope, in CPython
/// without a GIL, where another thread may drop the handler from the entry of the scope. -1 with an
/// exception.
static int keep_handler(PyObject *handler)
{
#ifdef Py_GIL_DISABLED
    PyObject *entries = memrt__current_scope_entries();
    if (entries == NULL || PyTuple_GET_SIZE(entries) == 0) {
        return 0; /* the context holds the handler */
    }
    PyObject *dict = PyThreadState_GetDict(); /* borrowed; NULL: no memory */
    return dict != NULL ? PyDict_SetItemString(dict, KEPT_HANDLER_KEY, handler) : -1;
#else
    (void)handler;
    return 0;
#endif
}

/// Return the policy of the handler in force, borrowed, and record the policy for the mapping
/// `variables`. The record borrows the policy, so the policy of a handler that another extension
/// made is not recorded. NULL, without an exception, on failure.
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

/// Replace the default policy of a context in a chunk of a parallel loop by the policy of the
/// launch. The thread then has no valid record, because records only know contexts.
static memrt_policy_t *apply_policy_of_launch(memrt_policy_t *policy)
{
    memrt_policy_t *of_launch = memrt__caller_chunk_policy();
    if (of_launch == NULL) {
        return policy;
    }
    memrt__policy_record_forget();
    return memrt__policy_is_default(policy) ? of_launch : policy;
}

/// The result is borrowed. The handler, and with it the policy, is still held by the context or the
/// entry of the scope, in CPython without a GIL by the thread. A chunk holds the policy of its
/// launch. No record is written in a block with a policy, so the next allocation of the block comes
/// here, too.
memrt_policy_t *memrt__current_policy(void)
{
    memrt_policy_t *policy;
    if (memrt__caller_is_fixed()) {
        return memrt__caller_policy();
    }
    PyObject *variables = memrt__policy_record_variables();
    if (!memrt__policy_record_find(variables, &policy)) {
        policy = find_policy(variables);
    }
    Py_XDECREF(variables);
    return apply_policy_of_launch(policy);
}

PyObject *memrt__current_handler_for(PyObject *policy)
{
    if (policy == Py_None) {
        return get_current_handler();
    }
    PyObject *handler =
        PyCapsule_CheckExact(policy) ? Py_NewRef(policy) : PyObject_GetAttr(policy, handler_name);
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

/// Restore the previous handler after a failed change, and keep the pending exception. If memory
/// for the token runs out, CPython has set the context variable already.
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
    Py_INCREF(handler);
    return memrt__handler_is_memrt(handler) ? memrt__current_scope_handler(handler) : handler;
}

PyMethodDef memrt__current_policy_methods[] = {
    {"set_handler", set_handler, METH_O,
     "set_handler(handler) -> handler\n\n"
     "Put `handler` in force for NumPy in the current context. Return the previous handler."},
    {"get_handler", get_handler, METH_NOARGS,
     "get_handler() -> handler\n\nReturn the handler that NumPy uses in the current context."},
    {"in_scope", get_scoped_handler, METH_O,
     "in_scope(handler) -> handler\n\n"
     "Return the handler of the same policy in the scope of this context. Outside of scopes, and\n"
     "for a handler that does not allocate from memrt, return `handler`."},
    {NULL, NULL, 0, NULL},
};

int memrt__current_policy_setup(PyObject *module)
{
    PyObject *none = PyTuple_New(0);
    if (handler_name == NULL) {
        handler_name = PyUnicode_InternFromString("_handler");
    }
    if (memrt__handler_stack_variable == NULL && handler_name != NULL && none != NULL) {
        memrt__handler_stack_variable = PyContextVar_New("memrt_handlers", none);
    }
    Py_XDECREF(none);
    if (handler_name == NULL || memrt__handler_stack_variable == NULL) {
        return -1;
    }
    return PyModule_AddObjectRef(module, "handler_stack_variable", memrt__handler_stack_variable);
}
