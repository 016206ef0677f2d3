#include "core/current_scope.h"

#include <stdbool.h>

#include "core/mem_handler.h"
#include "core/policy_record.h"
#include "support/errors.h"
#include "support/free_threading.h"

PyObject *memrt__current_scope_variable;

/// Members of an entry, a tuple. ENTRY_OWNER is the object that entered the scope, compared by
/// identity.
enum { ENTRY_OWNER, ENTRY_SCOPE, ENTRY_CAPSULE, ENTRY_HANDLERS };

atomic_bool memrt__scope_was_opened;

void memrt__current_scope_note_opened(void)
{
    atomic_store_explicit(&memrt__scope_was_opened, true, memory_order_relaxed);
    memrt__policy_record_note_choice();
}

PyObject *memrt__current_scope_entries(void)
{
    PyObject *entries = NULL;
    /* GCOV_EXCL_BR_START: the context variable has a default */
    if (!memrt__current_scope_is_used() ||
        PyContextVar_Get(memrt__current_scope_variable, NULL, &entries) < 0) {
        /* GCOV_EXCL_BR_STOP */
        PyErr_Clear();
        return NULL;
    }
    Py_DECREF(entries); /* borrowed from now on: the context holds the tuple */
    return entries;
}

/// Return the innermost entry of this context, or NULL without an exception. New reference.
static PyObject *get_innermost_entry(void)
{
    PyObject *entries = memrt__current_scope_entries();
    Py_ssize_t depth = entries != NULL ? PyTuple_GET_SIZE(entries) : 0;
    return depth == 0 ? NULL : Py_NewRef(PyTuple_GET_ITEM(entries, depth - 1));
}

/// Maximum number of cached handlers per scope. Without a limit, an open scope would keep alive
/// every policy ever used in it.
#define HANDLERS_MAX 16

/// Create and cache the handler of the subpolicy of `policy` in `scope`. NULL with an exception.
static PyObject *create_handler(PyObject *handlers, PyObject *key, memrt_scope_t *scope,
                                memrt_policy_t *policy)
{
    memrt_policy_t *subpolicy;
    memrt_status_t status = memrt__api()->scope_policy(scope, policy, &subpolicy);
    if (status != MEMRT_OK) {
        return memrt__raise(status, "cannot use policy %s in scope %s",
                            memrt__api()->policy_name(policy), memrt__api()->scope_name(scope));
    }
    PyObject *handler = memrt__handler_new(subpolicy);
    if (PyDict_GET_SIZE(handlers) >= HANDLERS_MAX) {
        PyDict_Clear(handlers);
    }
    if (handler != NULL && PyDict_SetItem(handlers, key, handler) < 0) {
        Py_CLEAR(handler);
    }
    return handler;
}

static memrt_scope_t *get_scope(PyObject *entry)
{
    return PyCapsule_GetPointer(PyTuple_GET_ITEM(entry, ENTRY_CAPSULE), MEMRT_SCOPE_CAPSULE);
}

/// Return the cached or new handler of a policy in the scope of an entry. NULL with an exception.
static PyObject *get_entry_handler(PyObject *entry, memrt_policy_t *policy)
{
    PyObject *handlers = PyTuple_GET_ITEM(entry, ENTRY_HANDLERS);
    PyObject *key = PyLong_FromUnsignedLong(memrt__api()->policy_index(policy));
    PyObject *handler = key != NULL ? memrt__dict_get(handlers, key) : NULL;
    if (handler == NULL && !PyErr_Occurred()) {
        handler = create_handler(handlers, key, get_scope(entry), policy);
    }
    Py_XDECREF(key);
    return handler;
}

memrt_scope_t *memrt__current_scope(void)
{
    PyObject *entry = get_innermost_entry();
    if (entry == NULL) {
        return NULL;
    }
    memrt_scope_t *scope = get_scope(entry);
    Py_DECREF(entry); /* the tuple of the context holds the entry */
    return scope;
}

PyObject *memrt__current_scope_handler(PyObject *handler)
{
    PyObject *entry = get_innermost_entry();
    if (entry == NULL) {
        return handler;
    }
    PyObject *scoped = get_entry_handler(entry, memrt__handler_policy(handler));
    Py_DECREF(entry);
    Py_DECREF(handler);
    return scoped;
}

static PyObject *set_scope_entries(PyObject *module, PyObject *entries)
{
    (void)module;
    PyObject *token = PyContextVar_Set(memrt__current_scope_variable, entries);
    if (token == NULL) {
        return NULL;
    }
    Py_DECREF(token);
    Py_RETURN_NONE;
}

PyMethodDef memrt__current_scope_methods[] = {
    {"set_scope_entries", set_scope_entries, METH_O,
     "set_scope_entries(entries)\n\n"
     "Set the value of `scope_variable` in this context."},
    {NULL, NULL, 0, NULL},
};

int memrt__current_scope_setup(PyObject *module)
{
    PyObject *none = PyTuple_New(0);
    if (memrt__current_scope_variable == NULL && none != NULL) {
        memrt__current_scope_variable = PyContextVar_New("memrt_scopes", none);
    }
    Py_XDECREF(none);
    if (memrt__current_scope_variable == NULL) {
        return -1;
    }
    return PyModule_AddObjectRef(module, "scope_variable", memrt__current_scope_variable);
}
