/// NEP 49 handlers: capsules whose functions are memrt's block functions, with the policy as
/// context.

#include "core/mem_handler.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/policy_record.h"
#include "support/ndarray.h"

static PyDataMem_Handler *get_functions(PyObject *handler)
{
    return PyCapsule_GetPointer(handler, MEMRT_HANDLER_CAPSULE);
}

/// Destroy a handler capsule: release the policy and free the struct. The recorded policy may be
/// the policy of the handler.
static void destroy_handler(PyObject *handler)
{
    PyDataMem_Handler *functions = get_functions(handler);
    memrt__policy_record_drop();
    memrt__api()->policy_release(functions->allocator.ctx);
    free(functions);
}

/// Return the policy of a capsule made by this file, else NULL. Compares the destructor, not names.
static memrt_policy_t *get_capsule_policy(PyObject *handler)
{
    return PyCapsule_CheckExact(handler) && PyCapsule_GetDestructor(handler) == destroy_handler
               ? PyCapsule_GetContext(handler)
               : NULL;
}

static void fill_functions(PyDataMem_Handler *functions, memrt_policy_t *policy)
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
    fill_functions(functions, policy);
    PyObject *handler = PyCapsule_New(functions, MEMRT_HANDLER_CAPSULE, destroy_handler);
    if (handler == NULL) {
        memrt__api()->policy_release(policy);
        free(functions);
        return NULL;
    }
    (void)PyCapsule_SetContext(handler, policy); /* cannot fail on a capsule */
    return handler;
}

memrt_policy_t *memrt__handler_policy(PyObject *handler)
{
    memrt_policy_t *policy = get_capsule_policy(handler);
    return policy != NULL ? policy : get_functions(handler)->allocator.ctx;
}

int memrt__handler_is_own(PyObject *handler)
{
    return get_capsule_policy(handler) != NULL;
}

int memrt__handler_is_memrt(PyObject *handler)
{
    return get_capsule_policy(handler) != NULL || memrt_handler_check(memrt__api(), handler);
}

const char *memrt__handler_name(PyObject *handler)
{
    /* GCOV_EXCL_BR_START: NumPy accepts capsules of this name only */
    return PyCapsule_IsValid(handler, MEMRT_HANDLER_CAPSULE) ? get_functions(handler)->name : "";
    /* GCOV_EXCL_BR_STOP */
}

int memrt__handler_setup(void)
{
    if (memrt__binding.default_handler == NULL) {
        memrt_policy_t *policy = memrt__api()->policy_default();
        memrt__api()->policy_acquire(policy);
        memrt__binding.default_handler = memrt__handler_new(policy);
    }
    return memrt__binding.default_handler != NULL ? 0 : -1;
}

static PyObject *is_memrt_handler(PyObject *module, PyObject *handler)
{
    (void)module;
    return PyBool_FromLong(memrt__handler_is_memrt(handler));
}

static PyObject *get_default_handler(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return Py_NewRef(memrt__binding.default_handler);
}

PyMethodDef memrt__handler_methods[] = {
    {"is_memrt_handler", is_memrt_handler, METH_O,
     "is_memrt_handler(handler) -> bool\n\n"
     "Return whether a handler allocates from a memrt policy."},
    {"default_handler", get_default_handler, METH_NOARGS,
     "default_handler() -> handler\n\nReturn the handler of the default policy."},
    {NULL, NULL, 0, NULL},
};
