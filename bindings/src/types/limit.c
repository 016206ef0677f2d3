#include "types/limit.h"

#include "core/current_policy.h"
#include "core/mem_handler.h"
#include "core/owner.h"
#include "support/arguments.h"
#include "support/errors.h"
#include "types/scope.h"

/// Object of a limit: a policy, a scope, or the process if both are NULL. `handler` is a new
/// reference that keeps the policy alive, or NULL.
typedef struct limited {
    PyObject *handler;
    memrt_policy_t *policy;
    memrt_scope_t *scope;
} limited_t;

/// Find the object of a limit by a scope capsule, a handler, or None. -1 with an exception.
static int find_limited(PyObject *object, limited_t *out)
{
    *out = (limited_t){NULL, NULL, NULL};
    if (object == Py_None) {
        return 0;
    }
    if (PyCapsule_IsValid(object, MEMRT_SCOPE_CAPSULE)) {
        out->scope = PyCapsule_GetPointer(object, MEMRT_SCOPE_CAPSULE);
        return 0;
    }
    out->handler = memrt__current_handler_for(object);
    if (out->handler == NULL) {
        return -1;
    }
    out->policy = memrt__handler_policy(out->handler);
    return 0;
}

/// Call a function of limits with the object and the amount of `args`. -1 with an exception.
static int call_with_amount(PyObject *args, memrt_limit_set_fn function, memrt_status_t *status)
{
    PyObject *object, *amount;
    limited_t limited;
    size_t bytes = SIZE_MAX;
    if (!PyArg_ParseTuple(args, "OO:limit_set", &object, &amount) ||
        (amount != Py_None && !memrt__size_argument(amount, &bytes)) ||
        find_limited(object, &limited) < 0) {
        return -1;
    }
    *status = function(limited.policy, limited.scope, bytes);
    Py_XDECREF(limited.handler);
    return 0;
}

static PyObject *limit_set(PyObject *module, PyObject *args)
{
    memrt_status_t status;
    (void)module;
    if (call_with_amount(args, memrt__api()->limit_set, &status) < 0) {
        return NULL;
    }
    if (status != MEMRT_OK) {
        return memrt__raise(status, "cannot set a limit, because this build has no counters");
    }
    Py_RETURN_NONE;
}

static PyObject *limit_set_soft(PyObject *module, PyObject *args)
{
    memrt_status_t status;
    (void)module;
    if (call_with_amount(args, memrt__api()->limit_set_soft, &status) < 0) {
        return NULL;
    }
    if (status == MEMRT_EINVAL) {
        return PyErr_Format(PyExc_ValueError, "soft limit must be at most the limit, got %S",
                            PyTuple_GET_ITEM(args, 1));
    }
    if (status != MEMRT_OK) {
        return memrt__raise(status, "cannot set a soft limit, because this build has no counters");
    }
    Py_RETURN_NONE;
}

/// Return a limit as an int, or None for MEMRT_NO_LIMIT.
static PyObject *amount_of(uint64_t bytes)
{
    return bytes == MEMRT_NO_LIMIT ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(bytes);
}

static PyObject *limit_read(PyObject *module, PyObject *object)
{
    memrt_limit_t limit = {.struct_size = sizeof(limit)};
    limited_t limited;
    (void)module;
    memrt__owner_drain();
    if (find_limited(object, &limited) < 0) {
        return NULL;
    }
    memrt_status_t status = memrt__api()->limit_read(limited.policy, limited.scope, &limit);
    Py_XDECREF(limited.handler);
    /* GCOV_EXCL_BR_START: struct_size is valid, and only one object is given */
    if (status != MEMRT_OK) {
        return memrt__raise(status, "cannot read a limit");
    }
    /* GCOV_EXCL_BR_STOP */
    return Py_BuildValue("(NKKNK)", amount_of(limit.limit), (unsigned long long)limit.live,
                         (unsigned long long)limit.held, amount_of(limit.soft),
                         (unsigned long long)limit.rises);
}

PyMethodDef memrt__limit_methods[] = {
    {"limit_set", limit_set, METH_VARARGS,
     "limit_set(what, amount)\n\n"
     "Limit the live bytes of a scope capsule, of the policy of a handler, or of the process for\n"
     "None. An amount of None removes the limit."},
    {"limit_set_soft", limit_set_soft, METH_VARARGS,
     "limit_set_soft(what, amount)\n\n"
     "Set the soft limit for the objects of limit_set. An amount of None removes the soft limit."},
    {"limit_read", limit_read, METH_O,
     "limit_read(what) -> (limit, live, held, soft, rises)\n\n"
     "Return the limit or None, the live bytes, the bytes that threads hold for their next "
     "blocks,\n"
     "the soft limit or None, and the rises above the soft limit, for the objects of limit_set."},
    {NULL, NULL, 0, NULL},
};
