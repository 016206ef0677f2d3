#include "scope.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "argument.h"
#include "errors.h"
#include "handler.h"
#include "owner.h"
#include "stats.h"

#define CAPSULE_NAME "memrt.scope"

/// Of a tuple: the entries of the scopes that this context is in, the innermost last.
static PyObject *variable;

/// Words of an entry, which is a tuple. The first is who entered, by identity.
enum { ENTRY_OWNER, ENTRY_SCOPE, ENTRY_CAPSULE, ENTRY_HANDLERS };

/// Whether there ever was a scope. Contexts are copied, and a copy may be in one for long: nobody
/// can tell when the last is left.
static atomic_bool used;

int memrt__scope_is_used(void)
{
    return atomic_load_explicit(&used, memory_order_relaxed);
}

static memrt_scope_t *scope_of(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, CAPSULE_NAME);
}

static void destroy(PyObject *capsule)
{
    memrt__api()->scope_release(scope_of(capsule));
}

/// Steals a reference to the scope, also on failure.
static PyObject *capsule_new(memrt_scope_t *scope)
{
    PyObject *capsule = PyCapsule_New(scope, CAPSULE_NAME, destroy);
    if (capsule == NULL) {
        memrt__api()->scope_release(scope);
    }
    return capsule;
}

/* --- The scope of a context. --- */

/// New reference to the innermost entry of this context, or NULL without an exception.
static PyObject *present(void)
{
    PyObject *entries = NULL;
    if (!memrt__scope_is_used() || PyContextVar_Get(variable, NULL, &entries) < 0) {
        PyErr_Clear();
        return NULL;
    }
    Py_ssize_t depth = PyTuple_GET_SIZE(entries);
    PyObject *entry = depth == 0 ? NULL : Py_NewRef(PyTuple_GET_ITEM(entries, depth - 1));
    Py_DECREF(entries);
    return entry;
}

/// A scope that stays open would else keep alive every policy that was ever used in it.
#define HANDLERS_MAX 16

static PyObject *make_handler(PyObject *handlers, PyObject *key, memrt_scope_t *scope,
                              memrt_policy_t *policy)
{
    memrt_policy_t *part;
    memrt_status_t status = memrt__api()->scope_policy(scope, policy, &part);
    if (status != MEMRT_OK) {
        return memrt__raise(status, "cannot use policy %s in scope %s",
                            memrt__api()->policy_name(policy), memrt__api()->scope_name(scope));
    }
    PyObject *handler = memrt__handler_new(part);
    if (PyDict_GET_SIZE(handlers) >= HANDLERS_MAX) {
        PyDict_Clear(handlers);
    }
    if (handler != NULL && PyDict_SetItem(handlers, key, handler) < 0) {
        Py_CLEAR(handler);
    }
    return handler;
}

static PyObject *handler_in(PyObject *entry, memrt_policy_t *policy)
{
    PyObject *handlers = PyTuple_GET_ITEM(entry, ENTRY_HANDLERS);
    PyObject *key = PyLong_FromUnsignedLong(memrt__api()->policy_index(policy));
    PyObject *handler = key != NULL ? PyDict_GetItemWithError(handlers, key) : NULL;
    if (handler != NULL) {
        Py_INCREF(handler);
    } else if (!PyErr_Occurred()) {
        handler =
            make_handler(handlers, key, scope_of(PyTuple_GET_ITEM(entry, ENTRY_CAPSULE)), policy);
    }
    Py_XDECREF(key);
    return handler;
}

PyObject *memrt__scope_handler(PyObject *handler)
{
    PyObject *entry = present();
    if (entry == NULL) {
        return handler;
    }
    PyObject *scoped = handler_in(entry, memrt__handler_policy(handler));
    Py_DECREF(entry);
    Py_DECREF(handler);
    return scoped;
}

static PyObject *in_scope(PyObject *module, PyObject *handler)
{
    (void)module;
    return memrt__scope_handler(Py_NewRef(handler));
}

/* --- The tree. --- */

static PyObject *scope_open(PyObject *module, PyObject *args)
{
    PyObject *parent;
    const char *name;
    memrt_scope_t *scope;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO&:scope_open", &parent, memrt__name_argument, &name)) {
        return NULL;
    }
    memrt_scope_t *around = parent == Py_None ? NULL : scope_of(parent);
    if (around == NULL && PyErr_Occurred()) {
        return NULL;
    }
    memrt_status_t status = memrt__api()->scope_open(around, name, &scope);
    atomic_store_explicit(&used, true, memory_order_relaxed);
    return status == MEMRT_OK ? capsule_new(scope) : memrt__raise(status, "cannot open a scope");
}

static int append_scope(PyObject *list, memrt_scope_t *scope)
{
    memrt__api()->scope_acquire(scope);
    PyObject *capsule = capsule_new(scope);
    int result = capsule != NULL ? PyList_Append(list, capsule) : -1;
    Py_XDECREF(capsule);
    return result;
}

static PyObject *scopes(PyObject *module, PyObject *unused)
{
    const memrt_api_t *api = memrt__api();
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(0);
    memrt_scope_t *scope = list != NULL ? api->scope_next(NULL) : NULL;
    while (scope != NULL) {
        if (list != NULL && append_scope(list, scope) < 0) {
            Py_CLEAR(list);
        }
        memrt_scope_t *next = list != NULL ? api->scope_next(scope) : NULL;
        api->scope_release(scope);
        scope = next;
    }
    return list;
}

static PyObject *scope_info(PyObject *module, PyObject *capsule)
{
    const memrt_api_t *api = memrt__api();
    (void)module;
    memrt_scope_t *scope = scope_of(capsule);
    if (scope == NULL) {
        return NULL;
    }
    const memrt_scope_t *parent = api->scope_parent(scope);
    return Py_BuildValue("(IsI)", (unsigned)api->scope_id(scope), api->scope_name(scope),
                         (unsigned)(parent == NULL ? 0 : api->scope_id(parent)));
}

static PyObject *scope_stats(PyObject *module, PyObject *capsule)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    (void)module;
    memrt__owner_drain();
    memrt_scope_t *scope = scope_of(capsule);
    if (scope == NULL) {
        return NULL;
    }
    memrt_status_t status = memrt__api()->scope_stats(scope, &stats);
    return status == MEMRT_OK ? memrt__stats_tuple(&stats)
                              : memrt__raise(status, "cannot read statistics");
}

static PyObject *scope_sizes(PyObject *module, PyObject *capsule)
{
    uint64_t counts[MEMRT_SIZE_BINS];
    (void)module;
    memrt_scope_t *scope = scope_of(capsule);
    PyObject *list = scope != NULL ? PyList_New(MEMRT_SIZE_BINS) : NULL;
    if (list == NULL) {
        return NULL;
    }
    memrt__api()->scope_sizes(scope, counts);
    for (Py_ssize_t bin = 0; list != NULL && bin < (Py_ssize_t)MEMRT_SIZE_BINS; bin++) {
        PyObject *count = PyLong_FromUnsignedLongLong(counts[bin]);
        if (count == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, bin, count);
        }
    }
    return list;
}

static PyObject *scope_reset_peak(PyObject *module, PyObject *capsule)
{
    (void)module;
    memrt_scope_t *scope = scope_of(capsule);
    if (scope == NULL) {
        return NULL;
    }
    memrt__api()->scope_reset_peak(scope);
    Py_RETURN_NONE;
}

int memrt__scope_setup(PyObject *module)
{
    PyObject *none = PyTuple_New(0);
    if (variable == NULL && none != NULL) {
        variable = PyContextVar_New("memrt_scopes", none);
    }
    Py_XDECREF(none);
    return variable != NULL ? PyModule_AddObjectRef(module, "scope_variable", variable) : -1;
}

PyMethodDef memrt__scope_methods[] = {
    {"in_scope", in_scope, METH_O,
     "in_scope(handler) -> handler\n\n"
     "That of the same policy in the scope of this context; outside of scopes the same."},
    {"scope_open", scope_open, METH_VARARGS,
     "scope_open(parent, name) -> scope\n\n"
     "A capsule for the scope of that name in another, or in none."},
    {"scopes", scopes, METH_NOARGS,
     "scopes() -> list of scopes\n\nAll that there are, parents before children."},
    {"scope_info", scope_info, METH_O,
     "scope_info(scope) -> (id, name, parent's id)\n\nWhat a scope is; a parent's id of 0: none."},
    {"scope_stats", scope_stats, METH_O,
     "scope_stats(scope) -> tuple of int\n\n"
     "What was born in it and in those inside of it, in the order of memrt_stats_t."},
    {"scope_sizes", scope_sizes, METH_O,
     "scope_sizes(scope) -> list of int\n\nTheir births by size, one bin for each doubling."},
    {"scope_reset_peak", scope_reset_peak, METH_O,
     "scope_reset_peak(scope)\n\nLet the peak start again from what is live now."},
    {NULL, NULL, 0, NULL},
};
