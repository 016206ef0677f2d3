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
    static char *keywords[] = {"nbytes", "alignment",    "zero", "policy",
                               "name",   "align_offset", NULL};
    memrt_new_options_t options = {.struct_size = sizeof(options), .alignment = MEMRT_ALIGN_MIN};
    PyObject *policy = Py_None;
    size_t size;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|O&$pOO&O&:alloc", keywords,
                                     memrt__size_argument, &size, memrt__align_argument,
                                     &options.alignment, &options.zeroed, &policy,
                                     memrt__name_argument, &options.name,
                                     memrt__align_offset_argument, &options.align_offset)) {
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
        memrt__tracemalloc_track_adopted(
            mi); /* memory with an owner is tracked by the owner's library */
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
    "alloc(nbytes, alignment=64, *, zero=False, policy=None, name=None, align_offset=0)\n"
    "--\n"
    "\n"
    "Allocate a buffer.\n"
    "\n"
    "Parameters\n"
    "----------\n"
    "nbytes : int\n"
    "    Size of the buffer in bytes, 0 or more.\n"
    "alignment : int or None, default 64\n"
    "    Bytes: a power of two up to 2**30. The address is a multiple of `alignment` and of\n"
    "    the alignment of the policy. None: the alignment of the policy alone.\n"
    "zero : bool, default False\n"
    "    True: all bytes are zero. False: the contents are undefined.\n"
    "policy : Policy, optional\n"
    "    Policy that allocates and accounts for the memory. None: the policy in force in this\n"
    "    context, else the default policy.\n"
    "name : str, optional\n"
    "    Name in reports, at most 63 bytes in UTF-8.\n"
    "align_offset : int, default 0\n"
    "    Byte of the buffer whose address has the alignment, instead of the first byte: a\n"
    "    multiple of 8. The alignment must then be at most 32768.\n"
    "\n"
    "Returns\n"
    "-------\n"
    "MemInfo\n"
    "    MemInfo with a reference to the new buffer.\n"
    "\n"
    "Raises\n"
    "------\n"
    "ValueError\n"
    "    A size, alignment or name is out of range.\n"
    "OutOfMemoryError\n"
    "    Memory or a limit is exhausted.\n"
    "\n"
    "Notes\n"
    "-----\n"
    "Ownership: the release of the last reference frees the buffer, on any thread.\n"
    "\n"
    "Examples\n"
    "--------\n"
    ">>> import memrt\n"
    ">>> mi = memrt.alloc(1000, alignment=4096, zero=True, name=\"table\")\n"
    ">>> mi.nbytes, mi.address % 4096, mi.name\n"
    "(1000, 0, 'table')\n"
    ">>> memoryview(mi)[999]\n"
    "0");

PyDoc_STRVAR(
    wrap_doc,
    "wrap(address, nbytes, dtor=None, owner=None, *, readonly=False, name=None, policy=None)\n"
    "--\n"
    "\n"
    "Put foreign memory under a MemInfo, without a copy.\n"
    "\n"
    "Parameters\n"
    "----------\n"
    "address : int\n"
    "    Address of the first byte.\n"
    "nbytes : int\n"
    "    Size of the memory in bytes.\n"
    "dtor : callable, optional\n"
    "    Destructor. memrt calls ``dtor(address, nbytes)`` once, after the last release.\n"
    "owner : object, optional\n"
    "    Object that keeps the memory alive. memrt drops the reference after the call of\n"
    "    `dtor`.\n"
    "readonly : bool, default False\n"
    "    Whether buffers and arrays over the memory are read-only.\n"
    "name : str, optional\n"
    "    Name in reports, at most 63 bytes in UTF-8.\n"
    "policy : Policy, optional\n"
    "    Policy that accounts for the memory. None: the policy in force in this context, else\n"
    "    the default policy.\n"
    "\n"
    "Returns\n"
    "-------\n"
    "MemInfo\n"
    "    MemInfo with a reference to the memory, of kind 'adopted'.\n"
    "\n"
    "Raises\n"
    "------\n"
    "ValueError\n"
    "    The memory does not lie in the address space, or the name is too long.\n"
    "TypeError\n"
    "    `dtor` is not callable.\n"
    "MemoryError\n"
    "    The allocation of the MemInfo failed. The caller keeps the foreign memory.\n"
    "\n"
    "Notes\n"
    "-----\n"
    "Ownership: the caller must keep the memory valid until the last release. In a reference\n"
    "cycle, `dtor` runs before the collector clears the objects that `dtor` uses.\n"
    "\n"
    "Threads: `dtor` runs at once if the releasing thread holds the GIL, otherwise soon, on\n"
    "the main thread. After the end of Python `dtor` never runs. An exception of `dtor` goes\n"
    "to ``sys.unraisablehook``.\n"
    "\n"
    "Examples\n"
    "--------\n"
    ">>> import memrt, ctypes\n"
    ">>> memory = ctypes.create_string_buffer(b\"hello\", 5)\n"
    ">>> mi = memrt.wrap(ctypes.addressof(memory), 5, owner=memory)\n"
    ">>> bytes(mi), mi.kind\n"
    "(b'hello', 'adopted')");

PyMethodDef memrt__buffer_methods[] = {
    {"alloc", MEMRT_KEYWORDS(allocate_buffer), alloc_doc},
    {"wrap", MEMRT_KEYWORDS(wrap_address), wrap_doc},
    {NULL, NULL, 0, NULL},
};
