#include "buffer.h"

#include "argument.h"
#include "errors.h"
#include "handler.h"
#include "meminfo.h"
#include "owner.h"
#include "trace.h"

static PyObject *alloc(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"nbytes", "align", "zero", "policy", "name", NULL};
    memrt_new_options_t options = {.struct_size = sizeof(options), .alignment = MEMRT_ALIGN_MIN};
    PyObject *policy = Py_None;
    size_t size;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|O&pOO&:alloc", keywords,
                                     memrt__size_argument, &size, memrt__align_argument,
                                     &options.alignment, &options.zeroed, &policy,
                                     memrt__name_argument, &options.name)) {
        return NULL;
    }
    PyObject *handler = memrt__handler_for(policy);
    if (handler == NULL) {
        return NULL;
    }
    options.policy = memrt__handler_policy(handler);
    PyObject *result = memrt__meminfo_allocate(size, &options);
    Py_DECREF(handler);
    return result;
}

/// The arguments of wrap() as they came.
typedef struct wrapped {
    uintptr_t address;
    size_t size;
    PyObject *dtor;
    PyObject *owner;
    int readonly;
    PyObject *policy;
    const char *name;
} wrapped_t;

static int parse_wrapped(PyObject *args, PyObject *kwargs, wrapped_t *out)
{
    static char *keywords[] = {"address",  "nbytes", "dtor",   "owner",
                               "readonly", "name",   "policy", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&O&|OOpO&O:wrap", keywords,
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
        out->size > PY_SSIZE_T_MAX) { /* no buffer of Python's can be larger */
        PyErr_Format(PyExc_ValueError, "%zu bytes from address %zu on are no memory", out->size,
                     (size_t)out->address);
        return -1;
    }
    return 0;
}

/// Adopt into a shell; on failure the memory stays the caller's and dtor does not run.
static PyObject *adopt(memrt_meminfo_object_t *shell, memrt_owner_t *owner,
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
        memrt__trace_adopted(mi); /* what an owner has is the owner's to show */
    }
    return memrt__meminfo_fill(shell, mi);
}

static PyObject *wrap_checked(const wrapped_t *wrapped, memrt_policy_t *policy)
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
    PyObject *result = adopt(shell, owner, wrapped, policy);
    if (result == NULL) {
        memrt__owner_discard(owner);
        Py_DECREF(shell);
    }
    return result;
}

static PyObject *wrap(PyObject *module, PyObject *args, PyObject *kwargs)
{
    wrapped_t wrapped = {.dtor = Py_None, .owner = Py_None, .policy = Py_None};
    (void)module;
    if (parse_wrapped(args, kwargs, &wrapped) < 0) {
        return NULL;
    }
    PyObject *handler = memrt__handler_for(wrapped.policy);
    if (handler == NULL) {
        return NULL;
    }
    memrt__owner_drain();
    PyObject *result = wrap_checked(&wrapped, memrt__handler_policy(handler));
    Py_DECREF(handler);
    return result;
}

PyDoc_STRVAR(
    alloc_doc,
    "alloc(nbytes, align=64, zero=False, policy=None, name=None) -> MemInfo\n\n"
    "Allocate `nbytes` bytes at an address that is a multiple of `align` and of the policy's\n"
    "alignment, all zero with `zero`. `policy` None: the one in force, else the default one.\n"
    "Raises ValueError for a bad size, alignment or name, MemoryError.");

PyDoc_STRVAR(
    wrap_doc,
    "wrap(address, nbytes, dtor=None, owner=None, readonly=False, name=None, policy=None)"
    " -> MemInfo\n\n"
    "Put foreign memory under a MemInfo. When the last reference goes, `dtor(address, nbytes)`\n"
    "is called once, then `owner` is let go: at once where the GIL is held, soon on the main\n"
    "thread otherwise, never after Python has ended. What `dtor` raises goes to\n"
    "sys.unraisablehook. When wrap() itself raises, the memory is still the caller's.\n"
    "The caller vouches that the memory lives until then.\n"
    "Raises ValueError, TypeError for a dtor that cannot be called, MemoryError.");

PyMethodDef memrt__buffer_methods[] = {
    {"alloc", MEMRT_KEYWORDS(alloc), alloc_doc},
    {"wrap", MEMRT_KEYWORDS(wrap), wrap_doc},
    {NULL, NULL, 0, NULL},
};
