#include "types/alloc.h"

#include "core/current_policy.h"
#include "core/mem_handler.h"
#include "core/meminfo_object.h"
#include "core/owner.h"
#include "core/tracemalloc.h"
#include "support/arguments.h"
#include "support/errors.h"

static PyObject *allocate_buffer(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"nbytes", "alignment", "zero", "policy", "name", NULL};
    memrt_new_options_t options = {.struct_size = sizeof(options), .alignment = MEMRT_ALIGN_MIN};
    PyObject *policy = Py_None;
    size_t size;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|O&$pOO&:alloc", keywords,
                                     memrt__size_argument, &size, memrt__align_argument,
                                     &options.alignment, &options.zeroed, &policy,
                                     memrt__name_argument, &options.name)) {
        return NULL;
    }
    PyObject *handler = memrt__current_handler_for(policy);
    if (handler == NULL) {
        return NULL;
    }
    options.policy = memrt__handler_policy(handler);
    PyObject *result = memrt__meminfo_allocate(size, &options);
    Py_DECREF(handler);
    return result;
}

/// Arguments of wrap(), as parsed; borrowed.
typedef struct wrapped {
    uintptr_t address;
    size_t size;
    PyObject *dtor;
    PyObject *owner;
    int readonly;
    PyObject *policy;
    const char *name;
} wrapped_t;

static int parse_wrap_arguments(PyObject *args, PyObject *kwargs, wrapped_t *out)
{
    static char *keywords[] = {"address",  "nbytes", "dtor",   "owner",
                               "readonly", "name",   "policy", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&O&|OO$pO&O:wrap", keywords,
                                     memrt__address_argument, &out->address, memrt__size_argument,
                                     &out->size, &out->dtor, &out->owner, &out->readonly,
                                     memrt__name_argument, &out->name, &out->policy)) {
        return -1;
    }
    if (out->dtor != Py_None && !PyCallable_Check(out->dtor)) {
        PyErr_Format(PyExc_TypeError, "dtor must be a callable of (address, nbytes), got %.200s",
                     Py_TYPE(out->dtor)->tp_name);
        return -1;
    }
    if (out->size > UINTPTR_MAX - out->address || (out->address == 0 && out->size != 0) ||
        out->size > PY_SSIZE_T_MAX) { /* maximum size of a Python buffer */
        PyErr_Format(
            PyExc_ValueError,
            "memory must lie in the address space of the process, got %zu bytes at address %zu",
            out->size, (size_t)out->address);
        return -1;
    }
    return 0;
}

/// Adopt the memory into a shell. On failure the caller keeps the memory, and dtor does not run.
static PyObject *adopt_memory(memrt_meminfo_object_t *shell, memrt_owner_t *owner,
                              const wrapped_t *wrapped, memrt_policy_t *policy)
{
    memrt_meminfo_t *mi;
    memrt_new_options_t options = memrt__owner_options(owner, policy);
    options.readonly = wrapped->readonly;
    options.name = wrapped->name;
    memrt_status_t status =
        memrt__api()->meminfo_adopt((void *)wrapped->address, wrapped->size, &options, &mi);
    if (status != MEMRT_OK) {
        return memrt__raise(status, "cannot wrap %zu bytes", wrapped->size);
    }
    if (wrapped->owner == Py_None && wrapped->dtor != Py_None) {
        memrt__tracemalloc_adopted(mi); /* memory with an owner is tracked by the owner's library */
    }
    return memrt__meminfo_fill(shell, mi);
}

static PyObject *wrap_memory(const wrapped_t *wrapped, memrt_policy_t *policy)
{
    memrt_meminfo_object_t *shell = memrt__meminfo_shell();
    if (shell == NULL) {
        return NULL;
    }
    memrt_owner_t *owner = memrt__owner_new(wrapped->owner != Py_None ? wrapped->owner : NULL,
                                            wrapped->dtor != Py_None ? wrapped->dtor : NULL,
                                            wrapped->address, wrapped->size);
    if (owner == NULL) {
        Py_DECREF(shell);
        return NULL;
    }
    PyObject *result = adopt_memory(shell, owner, wrapped, policy);
    if (result == NULL) {
        memrt__owner_discard(owner);
        Py_DECREF(shell);
    }
    return result;
}

static PyObject *wrap_address(PyObject *module, PyObject *args, PyObject *kwargs)
{
    wrapped_t wrapped = {.dtor = Py_None, .owner = Py_None, .policy = Py_None};
    (void)module;
    if (parse_wrap_arguments(args, kwargs, &wrapped) < 0) {
        return NULL;
    }
    PyObject *handler = memrt__current_handler_for(wrapped.policy);
    if (handler == NULL) {
        return NULL;
    }
    memrt__owner_drain();
    PyObject *result = wrap_memory(&wrapped, memrt__handler_policy(handler));
    Py_DECREF(handler);
    return result;
}

PyDoc_STRVAR(
    alloc_doc,
    "alloc(nbytes, alignment=64, *, zero=False, policy=None, name=None)\n--\n\n"
    "Allocate `nbytes` bytes at an address that is a multiple of `alignment` and of the alignment\n"
    "of the policy. The bytes are zero with `zero`, else undefined.\n"
    "policy: None: the policy in force, else the default policy.\n"
    "Raises ValueError for a bad size, alignment or name, MemoryError.");

PyDoc_STRVAR(
    wrap_doc,
    "wrap(address, nbytes, dtor=None, owner=None, *, readonly=False, name=None, policy=None)\n"
    "--\n\n"
    "Put foreign memory under a MemInfo. When the last reference is released, memrt calls\n"
    "`dtor(address, nbytes)` once, and then drops `owner`. Both happen at once if the\n"
    "releasing thread holds the GIL, soon on the main thread otherwise, and never after\n"
    "Python has ended. An exception of `dtor` goes to sys.unraisablehook. When wrap() raises,\n"
    "the caller keeps the memory. In a reference cycle, `dtor` runs before the collector\n"
    "clears the objects that `dtor` uses. The caller must keep the memory valid until the\n"
    "last reference is released.\n"
    "Raises ValueError, TypeError for a dtor that is not callable, MemoryError.");

PyMethodDef memrt__buffer_methods[] = {
    {"alloc", MEMRT_KEYWORDS(allocate_buffer), alloc_doc},
    {"wrap", MEMRT_KEYWORDS(wrap_address), wrap_doc},
    {NULL, NULL, 0, NULL},
};
