#include "types/scope.h"

#include "core/current_scope.h"
#include "core/owner.h"
#include "support/arguments.h"
#include "support/errors.h"
#include "types/stats.h"

static memrt_scope_t *get_scope(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, MEMRT_SCOPE_CAPSULE);
}

static void destroy_capsule(PyObject *capsule)
{
    memrt__api()->scope_release(get_scope(capsule));
}

/// Create a scope capsule. Steals a reference to the scope, also on failure.
static PyObject *create_capsule(memrt_scope_t *scope)
{
    PyObject *capsule = PyCapsule_New(scope, MEMRT_SCOPE_CAPSULE, destroy_capsule);
    if (capsule == NULL) {
        memrt__api()->scope_release(scope);
    }
    return capsule;
}

static PyObject *scope_open(PyObject *module, PyObject *args)
{
    PyObject *parent;
    const char *name;
    memrt_scope_t *scope;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO&:scope_open", &parent, memrt__name_argument, &name)) {
        return NULL;
    }
    memrt_scope_t *parent_scope = parent == Py_None ? NULL : get_scope(parent);
    if (parent_scope == NULL && PyErr_Occurred()) {
        return NULL;
    }
    memrt_status_t status = memrt__api()->scope_open(parent_scope, name, &scope);
    memrt__current_scope_note_opened();
    return status == MEMRT_OK ? create_capsule(scope)
                              : memrt__raise(status, "cannot open scope %s", name);
}

static int append_scope(PyObject *list, memrt_scope_t *scope)
{
    memrt__api()->scope_acquire(scope);
    PyObject *capsule = create_capsule(scope);
    int result = capsule != NULL ? PyList_Append(list, capsule) : -1;
    Py_XDECREF(capsule);
    return result;
}

static PyObject *list_scopes(PyObject *module, PyObject *unused)
{
    const memrt_api_t *api = memrt__api();
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(0);
    memrt_scope_t *scope = list != NULL ? api->scope_next(NULL) : NULL;
    while (scope != NULL) {
        /* GCOV_EXCL_BR_START: the loop ends once there is no list */
        if (list != NULL && append_scope(list, scope) < 0) {
            /* GCOV_EXCL_BR_STOP */
            Py_CLEAR(list);
        }
        memrt_scope_t *next = list != NULL ? api->scope_next(scope) : NULL;
        api->scope_release(scope);
        scope = next;
    }
    return list;
}

static PyObject *get_scope_info(PyObject *module, PyObject *capsule)
{
    const memrt_api_t *api = memrt__api();
    (void)module;
    memrt_scope_t *scope = get_scope(capsule);
    if (scope == NULL) {
        return NULL;
    }
    const memrt_scope_t *parent = api->scope_parent(scope);
    return Py_BuildValue("(INI)", (unsigned)api->scope_id(scope),
                         memrt__text(api->scope_name(scope)),
                         (unsigned)(parent == NULL ? 0 : api->scope_id(parent)));
}

static PyObject *get_scope_stats(PyObject *module, PyObject *capsule)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    (void)module;
    memrt__owner_drain();
    memrt_scope_t *scope = get_scope(capsule);
    if (scope == NULL) {
        return NULL;
    }
    memrt_status_t status = memrt__api()->scope_stats(scope, &stats);
    /* GCOV_EXCL_BR_START: struct_size is valid */
    return status == MEMRT_OK ? memrt__stats_tuple(&stats)
                              : memrt__raise(status, "cannot read statistics");
    /* GCOV_EXCL_BR_STOP */
}

static PyObject *get_scope_sizes(PyObject *module, PyObject *capsule)
{
    memrt_sizes_t sizes = {.struct_size = sizeof(sizes)};
    (void)module;
    memrt__owner_drain();
    memrt_scope_t *scope = get_scope(capsule);
    if (scope == NULL) {
        return NULL;
    }
    memrt_status_t status = memrt__api()->scope_stats_sizes(scope, &sizes);
    /* GCOV_EXCL_BR_START: struct_size is valid */
    return status == MEMRT_OK ? memrt__sizes_tuple(&sizes)
                              : memrt__raise(status, "cannot read sizes");
    /* GCOV_EXCL_BR_STOP */
}

static PyObject *scope_reset_peak(PyObject *module, PyObject *capsule)
{
    (void)module;
    memrt_scope_t *scope = get_scope(capsule);
    if (scope == NULL) {
        return NULL;
    }
    memrt__api()->scope_reset_peak(scope);
    Py_RETURN_NONE;
}

PyMethodDef memrt__scope_methods[] = {
    {"scope_open", scope_open, METH_VARARGS,
     "scope_open(parent, name) -> scope\n\n"
     "Return a capsule for the scope `name` in the scope `parent`; None: outside of scopes."},
    {"scopes", list_scopes, METH_NOARGS,
     "scopes() -> list of scopes\n\nReturn all scopes, parents before children."},
    {"scope_info", get_scope_info, METH_O,
     "scope_info(scope) -> (id, name, parent's id)\n\n"
     "Return the identity of a scope. The id of the parent is 0 without a parent."},
    {"scope_stats", get_scope_stats, METH_O,
     "scope_stats(scope) -> tuple of int\n\n"
     "Return the account of a scope with all inner scopes, in the order of memrt_stats_t."},
    {"scope_sizes", get_scope_sizes, METH_O,
     "scope_sizes(scope) -> (allocated, live)\n\n"
     "Return the blocks of a scope and all inner scopes by size: two tuples with a count for each\n"
     "doubling."},
    {"scope_reset_peak", scope_reset_peak, METH_O,
     "scope_reset_peak(scope)\n\nReset the peak to the live bytes."},
    {NULL, NULL, 0, NULL},
};
