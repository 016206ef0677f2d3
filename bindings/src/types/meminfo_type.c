#include "types/meminfo_type.h"

#include <structmember.h>

#include "core/device_sync.h"
#include "core/meminfo_object.h"
#include "core/owner.h"
#include "interop/array_interface.h"
#include "interop/arrow_export.h"
#include "interop/dlpack_export.h"
#include "support/arguments.h"
#include "support/errors.h"
#include "support/free_threading.h"
#include "support/ndarray.h"

static PyObject *meminfo_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    PyErr_Format(PyExc_TypeError,
                 "%s cannot be created directly: call memrt.alloc() for new memory, memrt.wrap() "
                 "for an address, or memrt.meminfo() for an array",
                 type->tp_name);
    return NULL;
}

/* --- Attributes. --- */

static const char *get_kind_name(const memrt_meminfo_t *mi)
{
    static const char *const names[] = {"unknown", "inline", "adopted", "resizable", "block"};
    /* GCOV_EXCL_BR_START: this libmemrt has no other kind */
    return mi->kind < sizeof(names) / sizeof(names[0]) ? names[mi->kind] : names[0];
    /* GCOV_EXCL_BR_STOP */
}

static const char *get_policy_name(const memrt_meminfo_t *mi)
{
    return memrt__api()->policy_name(memrt__api()->policy_of(mi));
}

static PyObject *meminfo_repr(memrt_meminfo_object_t *self)
{
    const memrt_api_t *api = memrt__api();
    char name[MEMRT_NAME_MAX + 1];
    memrt_meminfo_t *mi = self->mi;
    if (mi == NULL) {
        return PyUnicode_FromString("<memrt.MemInfo, released>");
    }
    api->get_name(mi, name);
    return PyUnicode_FromFormat(
        "<memrt.MemInfo%s%s%s of %zu bytes at %p, %s, %s%zu %s, policy '%s'>", name[0] ? " '" : "",
        name, name[0] ? "'" : "", api->size(mi), api->get_data(mi), get_kind_name(mi),
        api->readonly(mi) ? "read-only, " : "", api->refcount(mi),
        api->refcount(mi) == 1 ? "reference" : "references", get_policy_name(mi));
}

static Py_hash_t meminfo_hash(memrt_meminfo_object_t *self)
{
    uintptr_t address = self->mi != NULL ? (uintptr_t)self->mi : (uintptr_t)self;
    return (Py_hash_t)(address >> 6); /* headers are aligned to cache lines; the hash is never -1 */
}

static PyObject *meminfo_compare(PyObject *left, PyObject *right, int operation)
{
    if ((operation != Py_EQ && operation != Py_NE) || !memrt__meminfo_check(right)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    memrt_meminfo_t *mi = ((memrt_meminfo_object_t *)left)->mi;
    int same = left == right || (mi != NULL && mi == ((memrt_meminfo_object_t *)right)->mi);
    return PyBool_FromLong(same == (operation == Py_EQ));
}

/// Define a getter NAME whose value is the expression over `mi`.
#define GETTER(NAME, EXPRESSION)                                                                   \
    static PyObject *get_##NAME(memrt_meminfo_object_t *self, void *unused)                        \
    {                                                                                              \
        (void)unused;                                                                              \
        memrt_meminfo_t *mi = memrt__meminfo_get(self);                                            \
        return mi != NULL ? (EXPRESSION) : NULL;                                                   \
    }

GETTER(address, PyLong_FromSize_t((size_t)memrt__api()->get_data(mi)))
GETTER(nbytes, PyLong_FromSize_t(memrt__api()->size(mi)))
GETTER(refcount, PyLong_FromSize_t(memrt__api()->refcount(mi)))
GETTER(readonly, PyBool_FromLong(memrt__api()->readonly(mi)))
GETTER(kind, PyUnicode_FromString(get_kind_name(mi)))
GETTER(policy, memrt__text(get_policy_name(mi)))

static PyObject *get_parent(memrt_meminfo_object_t *self, void *unused)
{
    (void)unused;
    memrt_meminfo_t *mi = memrt__meminfo_get(self);
    if (mi == NULL) {
        return NULL;
    }
    memrt_owner_t *owner = memrt__owner_of(mi);
    return Py_NewRef(owner != NULL && owner->object != NULL ? owner->object : Py_None);
}

static PyObject *get_external_allocator(memrt_meminfo_object_t *self, void *unused)
{
    (void)unused;
    memrt_meminfo_t *mi = memrt__meminfo_get(self);
    if (mi == NULL) {
        return NULL;
    }
    memrt_external_allocator_t *external = memrt__api()->external_allocator(mi);
    /* GCOV_EXCL_BR_START: ./dev suites numba tests external allocators */
    return external != NULL ? PyLong_FromVoidPtr(external) : Py_NewRef(Py_None);
    /* GCOV_EXCL_BR_STOP */
}

static PyObject *get_name(memrt_meminfo_object_t *self, void *unused)
{
    char name[MEMRT_NAME_MAX + 1];
    (void)unused;
    memrt_meminfo_t *mi = memrt__meminfo_get(self);
    if (mi == NULL) {
        return NULL;
    }
    memrt__api()->get_name(mi, name);
    return name[0] != 0 ? memrt__text(name) : Py_NewRef(Py_None);
}

static int set_name(memrt_meminfo_object_t *self, PyObject *value, void *unused)
{
    const char *name = NULL;
    (void)unused;
    memrt_meminfo_t *mi = memrt__meminfo_get(self);
    if (mi == NULL || (value != NULL && !memrt__name_argument(value, &name))) {
        return -1;
    }
    memrt_status_t status = memrt__api()->set_name(mi, name);
    if (status != MEMRT_OK) {
        memrt__raise(status, "cannot set the name of a MemInfo");
        return -1;
    }
    return 0;
}

/* --- Protocols. --- */

static PyObject *export_meminfo_capsule(memrt_meminfo_object_t *self, PyObject *unused)
{
    (void)unused;
    memrt_meminfo_t *mi = memrt__meminfo_get(self);
    if (mi == NULL) {
        return NULL;
    }
    MEMRT_SHARED_WRITE(self->handed_out, 1);
    memrt__api()->acquire(mi);
    return memrt_meminfo_as_capsule(memrt__api(), mi);
}

static int meminfo_getbuffer(memrt_meminfo_object_t *self, Py_buffer *view, int flags)
{
    memrt_bytes_t bytes;
    if (memrt__device_get_host_bytes(self, &bytes) < 0) {
        view->obj = NULL;
        return -1;
    }
    if (PyBuffer_FillInfo(view, (PyObject *)self, bytes.data, (Py_ssize_t)bytes.size,
                          bytes.readonly, flags) < 0) {
        return -1;
    }
    MEMRT_SHARED_ADD(self->exports, 1);
    return 0;
}

static void meminfo_releasebuffer(memrt_meminfo_object_t *self, Py_buffer *view)
{
    (void)view;
    MEMRT_SHARED_ADD(self->exports, -1);
}

static PyObject *meminfo_dlpack(memrt_meminfo_object_t *self, PyObject *const *args,
                                Py_ssize_t count, PyObject *names)
{
    memrt_meminfo_t *mi = memrt__meminfo_get(self);
    if (mi == NULL) {
        return NULL;
    }
    memrt_dlpack_view_t view = memrt__dlpack_bytes(mi);
    return memrt__dlpack_produce(self, &view, args, count, names);
}

static PyObject *meminfo_dlpack_device(memrt_meminfo_object_t *self, PyObject *unused)
{
    (void)unused;
    memrt_meminfo_t *mi = memrt__meminfo_get(self);
    return mi != NULL ? memrt__dlpack_device_tuple(mi) : NULL;
}

/* --- The type. --- */

PyDoc_STRVAR(capsule_doc, "__memrt_meminfo__($self, /)\n"
                          "--\n"
                          "\n"
                          "Return a capsule with the MemInfo, for C code.\n"
                          "\n"
                          "Returns\n"
                          "-------\n"
                          "PyCapsule\n"
                          "    Capsule named 'memrt.meminfo', with a reference of its own.");

static PyMethodDef methods[] = {
    {"__dlpack__", MEMRT_FAST_KEYWORDS(meminfo_dlpack), MEMRT_DLPACK_DOC},
    {"__dlpack_device__", (PyCFunction)(void (*)(void))meminfo_dlpack_device, METH_NOARGS,
     MEMRT_DLPACK_DEVICE_DOC},
    {"__arrow_c_schema__", (PyCFunction)(void (*)(void))memrt__arrow_schema_of, METH_NOARGS,
     MEMRT_ARROW_SCHEMA_DOC},
    {"__arrow_c_array__", MEMRT_FAST_KEYWORDS(memrt__arrow_array_of), MEMRT_ARROW_ARRAY_DOC},
    {"__arrow_c_device_array__", MEMRT_FAST_KEYWORDS(memrt__arrow_device_array_of),
     MEMRT_ARROW_DEVICE_ARRAY_DOC},
    {"__memrt_meminfo__", (PyCFunction)(void (*)(void))export_meminfo_capsule, METH_NOARGS,
     capsule_doc},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(memrt_meminfo_object_t, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

#define ATTRIBUTE(NAME, DOC) {#NAME, (getter)(void (*)(void))get_##NAME, NULL, DOC, NULL}

static PyGetSetDef attributes[] = {
    ATTRIBUTE(address, "Address of the first byte."),
    ATTRIBUTE(nbytes, "Requested size in bytes."),
    ATTRIBUTE(refcount, "Number of references, including this object. Other threads may change the "
                        "number at any time."),
    ATTRIBUTE(parent, "Owner that keeps wrapped memory alive, or None."),
    ATTRIBUTE(external_allocator, "Address of the external allocator of the memory, or None."),
    {"name", (getter)(void (*)(void))get_name, (setter)(void (*)(void))set_name,
     "Name in reports, at most 63 bytes in UTF-8, or None. Writable.", NULL},
    ATTRIBUTE(readonly, "Whether buffers and arrays over the memory are read-only."),
    ATTRIBUTE(kind, "Kind of the buffer: 'inline', 'adopted', 'resizable' or 'block'."),
    ATTRIBUTE(policy, "Name of the policy that accounts for the memory."),
    {"__array_interface__", (getter)(void (*)(void))memrt__array_interface_dict, NULL,
     "Dict of NumPy's array interface, version 3, over the bytes. Keep a reference to the MemInfo.",
     NULL},
    {"__array_struct__", (getter)(void (*)(void))memrt__array_interface_struct, NULL,
     "Capsule with a C struct PyArrayInterface over the bytes. The capsule keeps the MemInfo "
     "alive.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(
    type_doc,
    "Reference to a reference-counted buffer.\n"
    "\n"
    ":func:`memrt.alloc`, :func:`memrt.wrap` and :func:`memrt.meminfo` return MemInfo\n"
    "objects. A MemInfo exports the bytes of the buffer through the buffer protocol, NumPy's\n"
    "array interface, DLPack and Arrow. MemInfo objects of the same buffer are equal.\n"
    "\n"
    "Notes\n"
    "-----\n"
    "Ownership: each object holds one reference. Other MemInfo objects, arrays and C code may\n"
    "hold further references. The release of the last reference frees the memory, or gives\n"
    "foreign memory back.\n"
    "\n"
    "Threads: any thread may use and release a MemInfo.\n"
    "\n"
    "Examples\n"
    "--------\n"
    ">>> import memrt\n"
    ">>> mi = memrt.alloc(100)\n"
    ">>> array = memrt.as_array(mi)\n"
    ">>> mi.nbytes, mi.refcount, mi == memrt.meminfo(array)\n"
    "(100, 1, True)");

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)type_doc},
    {Py_tp_new, meminfo_new},
    {Py_tp_dealloc, memrt__meminfo_dealloc},
    {Py_tp_traverse, memrt__meminfo_traverse},
    {Py_tp_clear, memrt__meminfo_clear},
    {Py_tp_finalize, memrt__meminfo_finalize},
    {Py_tp_repr, meminfo_repr},
    {Py_tp_hash, meminfo_hash},
    {Py_tp_richcompare, meminfo_compare},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_getset, attributes},
    {Py_bf_getbuffer, meminfo_getbuffer},
    {Py_bf_releasebuffer, meminfo_releasebuffer},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "memrt.MemInfo",
    .basicsize = sizeof(memrt_meminfo_object_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

int memrt__meminfo_type_setup(PyObject *module)
{
    if (memrt__binding.meminfo_type == NULL) {
        PyObject *type = PyType_FromSpec(&spec);
        if (type == NULL) {
            return -1;
        }
        memrt__binding.meminfo_type = (PyTypeObject *)type;
    }
    return PyModule_AddObjectRef(module, "MemInfo", (PyObject *)memrt__binding.meminfo_type);
}
