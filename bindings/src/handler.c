#include "handler.h"

#include <stdio.h>
#include <stdlib.h>

#include "errors.h"
#include "ndarray.h"
#include "nrt_alloc.h"
#include "scope.h"

#define CAPSULE_NAME "mem_handler"

static PyObject *attribute; ///< name of a policy's attribute that holds its handler, interned

static PyDataMem_Handler *functions_of(PyObject *handler)
{
    return PyCapsule_GetPointer(handler, CAPSULE_NAME);
}

static void destroy(PyObject *handler)
{
    PyDataMem_Handler *functions = functions_of(handler);
    memrt__api()->policy_release(functions->allocator.ctx);
    free(functions);
}

/// The policy of a capsule that was made here, else NULL. Says so without comparing names.
static memrt_policy_t *own_policy(PyObject *handler)
{
    return PyCapsule_CheckExact(handler) && PyCapsule_GetDestructor(handler) == destroy
               ? PyCapsule_GetContext(handler)
               : NULL;
}

static int leads_to_memrt(PyObject *handler)
{
    return own_policy(handler) != NULL || memrt_handler_check(memrt__api(), handler);
}

static void fill(PyDataMem_Handler *functions, memrt_policy_t *policy)
{
    const memrt_api_t *api = memrt__api();
    int is_default = api->policy_index(policy) == api->policy_index(api->policy_default());
    snprintf(functions->name, sizeof(functions->name), "memrt%s%s", is_default ? "" : ":",
             is_default ? "" : api->policy_name(policy));
    functions->version = 1;
    functions->allocator.ctx = policy;
    functions->allocator.malloc = api->block_alloc;
    functions->allocator.calloc = api->block_calloc;
    functions->allocator.realloc = api->block_realloc;
    functions->allocator.free = api->block_free;
}

PyObject *memrt__handler_new(memrt_policy_t *policy)
{
    PyDataMem_Handler *functions = calloc(1, sizeof(*functions));
    if (functions == NULL) {
        memrt__api()->policy_release(policy);
        return PyErr_NoMemory();
    }
    fill(functions, policy);
    PyObject *handler = PyCapsule_New(functions, CAPSULE_NAME, destroy);
    if (handler == NULL) {
        memrt__api()->policy_release(policy);
        free(functions);
        return NULL;
    }
    (void)PyCapsule_SetContext(handler, policy); /* fails for what is no capsule only */
    return handler;
}

memrt_policy_t *memrt__handler_policy(PyObject *handler)
{
    memrt_policy_t *policy = own_policy(handler);
    return policy != NULL ? policy : functions_of(handler)->allocator.ctx;
}

const char *memrt__handler_name(PyObject *handler)
{
    return PyCapsule_IsValid(handler, CAPSULE_NAME) ? functions_of(handler)->name : "";
}

static PyObject *handler_in_force(void)
{
    PyObject *handler = PyDataMem_GetHandler();
    if (handler == NULL || (handler != PyDataMem_DefaultHandler && leads_to_memrt(handler))) {
        return handler;
    }
    Py_DECREF(handler);
    return memrt__scope_handler(Py_NewRef(memrt__binding.default_handler));
}

/// Both the context and, in a scope, the scope still hold it when the reference is gone.
memrt_policy_t *memrt__handler_policy_in_force(void)
{
    PyObject *handler = handler_in_force();
    if (handler == NULL) {
        PyErr_Clear();
        return NULL;
    }
    memrt_policy_t *policy = memrt__handler_policy(handler);
    Py_DECREF(handler);
    return policy;
}

PyObject *memrt__handler_for(PyObject *policy)
{
    if (policy == Py_None) {
        return handler_in_force();
    }
    PyObject *handler =
        PyCapsule_CheckExact(policy) ? Py_NewRef(policy) : PyObject_GetAttr(policy, attribute);
    if (handler != NULL && leads_to_memrt(handler)) {
        return memrt__scope_handler(handler);
    }
    if (handler != NULL || PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Format(PyExc_TypeError, "policy must be a memrt.Policy or None, got %.200s",
                     Py_TYPE(policy)->tp_name);
    }
    Py_XDECREF(handler);
    return NULL;
}

int memrt__handler_setup(void)
{
    if (memrt__binding.default_handler == NULL) {
        memrt_policy_t *policy = memrt__api()->policy_default();
        memrt__api()->policy_acquire(policy);
        memrt__binding.default_handler = memrt__handler_new(policy);
    }
    if (attribute == NULL) {
        attribute = PyUnicode_InternFromString("_handler");
    }
    return memrt__binding.default_handler != NULL && attribute != NULL ? 0 : -1;
}

/// CPython sets a context variable also where it then has no memory for the token that says so.
static void put_back(PyObject *before)
{
    memrt_pending_t pending;
    memrt__pending_save(&pending);
    Py_XDECREF(PyDataMem_SetHandler(before));
    PyErr_Clear();
    memrt__pending_restore(&pending);
}

/// Put `handler` in force; the one that stood before, or NULL and then that one still stands.
static PyObject *put(PyObject *handler)
{
    PyObject *before = PyDataMem_GetHandler();
    if (before == NULL) {
        return NULL;
    }
    PyObject *replaced = PyDataMem_SetHandler(handler);
    if (replaced == NULL) {
        put_back(before);
    }
    Py_DECREF(before);
    return replaced;
}

static PyObject *set_handler(PyObject *module, PyObject *handler)
{
    (void)module;
    if (!PyCapsule_IsValid(handler, CAPSULE_NAME)) {
        PyErr_SetString(PyExc_TypeError, "a handler is a capsule named 'mem_handler'");
        return NULL;
    }
    return put(handler);
}

static PyObject *get_handler(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyDataMem_GetHandler();
}

static PyObject *is_memrt_handler(PyObject *module, PyObject *handler)
{
    (void)module;
    return PyBool_FromLong(leads_to_memrt(handler));
}

static PyObject *count_entered(PyObject *handler, int change)
{
    if (handler != memrt__binding.default_handler) {
        memrt__nrt_policies_entered(change);
    }
    Py_RETURN_NONE;
}

static PyObject *entered(PyObject *module, PyObject *handler)
{
    (void)module;
    return count_entered(handler, 1);
}

static PyObject *left(PyObject *module, PyObject *handler)
{
    (void)module;
    return count_entered(handler, -1);
}

static PyObject *default_handler(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return Py_NewRef(memrt__binding.default_handler);
}

PyMethodDef memrt__handler_methods[] = {
    {"set_handler", set_handler, METH_O,
     "set_handler(handler) -> handler\n\n"
     "Make `handler` NumPy's in the current context; returns the one that stood before."},
    {"get_handler", get_handler, METH_NOARGS,
     "get_handler() -> handler\n\nThe handler that NumPy uses in the current context."},
    {"is_memrt_handler", is_memrt_handler, METH_O,
     "is_memrt_handler(handler) -> bool\n\nWhether it leads to a memrt policy."},
    {"entered", entered, METH_O,
     "entered(handler) -> None\n\n"
     "Tell that `handler` was put in place in one context more: compiled code looks for a policy\n"
     "only while one other than the default is in place somewhere. Cannot fail."},
    {"left", left, METH_O, "left(handler) -> None\n\nThe opposite of entered()."},
    {"default_handler", default_handler, METH_NOARGS,
     "default_handler() -> handler\n\nThe handler of the default policy."},
    {NULL, NULL, 0, NULL},
};
