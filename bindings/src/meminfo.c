#include "meminfo.h"

#include <structmember.h>

#include "argument.h"
#include "arrow.h"
#include "dlpack.h"
#include "errors.h"
#include "interface.h"
#include "shortage.h"
#include "ndarray.h"
#include "owner.h"
#include "placement.h"
#include "spares.h"
#include "trace.h"

static memrt_spares_t spares;

memrt_meminfo_t *memrt__meminfo_get(memrt_meminfo_object_t *self)
{
    if (self->mi == NULL) {
        PyErr_SetString(PyExc_ReferenceError,
                        "the memory of this MemInfo went with the reference cycle it was part of");
    }
    return self->mi;
}

static memrt_meminfo_object_t *new_object(void)
{
    PyObject *spare = memrt__spares_take(&spares);
    PyTypeObject *type = memrt__binding.meminfo_type;
    return spare != NULL ? (memrt_meminfo_object_t *)PyObject_Init(spare, type)
                         : PyObject_GC_New(memrt_meminfo_object_t, type);
}

memrt_meminfo_object_t *memrt__meminfo_shell(void)
{
    memrt_meminfo_object_t *self = new_object();
    if (self != NULL) {
        self->mi = NULL;
        self->weakrefs = NULL;
        self->exports = 0;
        self->handed_out = 0;
        self->waits = 0;
    }
    return self;
}

PyObject *memrt__meminfo_fill(memrt_meminfo_object_t *shell, memrt_meminfo_t *mi)
{
    shell->mi = mi;
    if (memrt__owner_of(mi) != NULL) {
        PyObject_GC_Track(shell); /* others cannot be part of a cycle */
    }
    return (PyObject *)shell;
}

PyObject *memrt__meminfo_fill_waiting(memrt_meminfo_object_t *shell, memrt_meminfo_t *mi)
{
    shell->waits = 1;
    return memrt__meminfo_fill(shell, mi);
}

PyObject *memrt__meminfo_hand_out(memrt_meminfo_object_t *shell, memrt_meminfo_t *mi)
{
    shell->handed_out = 1; /* whoever it came from may know the address */
    shell->waits = (mi->flags & MEMRT_FLAG_DEVICE) != 0;
    return memrt__meminfo_fill(shell, mi);
}

PyObject *memrt__meminfo_allocate(size_t size, memrt_new_options_t *options)
{
    const memrt_api_t *api = memrt__api();
    memrt_meminfo_t *mi;
    memrt__owner_drain();
    if (options->alignment != 0) {
        size_t least = api->policy_alignment(options->policy);
        options->alignment = options->alignment < least ? least : options->alignment;
    }
    memrt_status_t status = api->meminfo_new(size, options, &mi);
    if (status == MEMRT_ENOMEM) {
        return memrt__raise_shortage(options->policy, size, NULL);
    }
    if (status != MEMRT_OK) {
        return memrt__raise(status, "cannot allocate %zu bytes", size);
    }
    memrt_meminfo_object_t *shell = memrt__meminfo_shell();
    if (shell == NULL || memrt_trace(api, mi) < 0) {
        Py_XDECREF(shell);
        api->release(mi);
        return NULL;
    }
    return memrt__meminfo_fill(shell, mi);
}

memrt_meminfo_object_t *memrt__meminfo_from(PyObject *object)
{
    memrt_meminfo_t *mi;
    if (memrt__meminfo_check(object)) {
        return (memrt_meminfo_object_t *)Py_NewRef(object);
    }
    int exports =
        PyCapsule_IsValid(object, MEMRT_MEMINFO_CAPSULE) ? 1 : memrt_exporter_check(object);
    if (exports == 0) {
        PyErr_Format(PyExc_TypeError,
                     "expected a memrt.MemInfo, from memrt.alloc(), memrt.wrap() or "
                     "memrt.meminfo(), got %.200s",
                     Py_TYPE(object)->tp_name);
        return NULL;
    }
    memrt_meminfo_object_t *shell = exports > 0 ? memrt__meminfo_shell() : NULL;
    if (shell == NULL || memrt_array_meminfo(memrt__api(), object, &mi) < 0) {
        Py_XDECREF(shell);
        return NULL;
    }
    return (memrt_meminfo_object_t *)memrt__meminfo_hand_out(shell, mi);
}

/* --- The life of the object. --- */

static PyObject *meminfo_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    PyErr_Format(PyExc_TypeError,
                 "%s cannot be built by hand: memrt.alloc() allocates, memrt.wrap() takes over an "
                 "address, memrt.meminfo() asks an array for its own",
                 type->tp_name);
    return NULL;
}

/// The owner whose references this object alone keeps alive, or NULL. Only then may the cycle
/// collector look at it and clear it. Once C code knows the MemInfo the answer is never: such code
/// may take a reference at any time, also while the collector runs, and the count would say so too
/// late.
static memrt_owner_t *exclusive_owner(memrt_meminfo_object_t *self)
{
    if (self->mi == NULL || self->handed_out || memrt__api()->refcount(self->mi) != 1) {
        return NULL;
    }
    return memrt__owner_of(self->mi);
}

static int meminfo_traverse(memrt_meminfo_object_t *self, visitproc visit, void *arg)
{
    memrt_owner_t *owner = exclusive_owner(self);
    Py_VISIT(Py_TYPE(self));
    return owner != NULL ? memrt__owner_visit(owner, visit, arg) : 0;
}

static int meminfo_clear(memrt_meminfo_object_t *self)
{
    if (self->exports == 0 && exclusive_owner(self) != NULL) {
        memrt_meminfo_t *mi = self->mi;
        self->mi = NULL;
        memrt__api()->release(mi);
    }
    return 0;
}

static void release(const memrt_meminfo_object_t *self)
{
    if (!self->waits) {
        memrt__api()->release(self->mi);
        return;
    }
    Py_BEGIN_ALLOW_THREADS;
    memrt__api()->release(self->mi);
    Py_END_ALLOW_THREADS;
    memrt__owner_drain();
}

static void meminfo_dealloc(memrt_meminfo_object_t *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (self->weakrefs != NULL) {
        PyObject_ClearWeakRefs((PyObject *)self);
    }
    if (self->mi != NULL) {
        release(self);
    }
    if (!memrt__spares_put(&spares, self)) {
        PyObject_GC_Del(self);
    }
    Py_DECREF(type);
}

/* --- What it can be asked. --- */

static const char *kind_name(const memrt_meminfo_t *mi)
{
    static const char *const names[] = {"unknown", "inline", "adopted", "resizable", "block"};
    return mi->kind < sizeof(names) / sizeof(names[0]) ? names[mi->kind] : names[0];
}

static const char *policy_name(const memrt_meminfo_t *mi)
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
        name, name[0] ? "'" : "", api->size(mi), api->get_data(mi), kind_name(mi),
        api->readonly(mi) ? "read-only, " : "", api->refcount(mi),
        api->refcount(mi) == 1 ? "reference" : "references", policy_name(mi));
}

static Py_hash_t meminfo_hash(memrt_meminfo_object_t *self)
{
    uintptr_t address = self->mi != NULL ? (uintptr_t)self->mi : (uintptr_t)self;
    return (Py_hash_t)(address >> 6); /* headers start on a cache line; never -1 */
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

/// Defines a getter NAME whose value is the expression over `mi`.
#define GETTER(NAME, EXPRESSION)                                                                   \
    static PyObject *get_##NAME(memrt_meminfo_object_t *self, void *unused)                        \
    {                                                                                              \
        (void)unused;                                                                              \
        memrt_meminfo_t *mi = memrt__meminfo_get(self);                                            \
        return mi != NULL ? (EXPRESSION) : NULL;                                                   \
    }

GETTER(data, PyLong_FromSize_t((size_t)memrt__api()->get_data(mi)))
GETTER(size, PyLong_FromSize_t(memrt__api()->size(mi)))
GETTER(refcount, PyLong_FromSize_t(memrt__api()->refcount(mi)))
GETTER(readonly, PyBool_FromLong(memrt__api()->readonly(mi)))
GETTER(kind, PyUnicode_FromString(kind_name(mi)))
GETTER(policy, PyUnicode_FromString(policy_name(mi)))

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
    return external != NULL ? PyLong_FromVoidPtr(external) : Py_NewRef(Py_None);
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
    return name[0] != 0 ? PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "replace")
                        : Py_NewRef(Py_None);
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
        memrt__raise(status, "cannot name a MemInfo");
        return -1;
    }
    return 0;
}

static PyObject *meminfo_capsule(memrt_meminfo_object_t *self, PyObject *unused)
{
    (void)unused;
    memrt_meminfo_t *mi = memrt__meminfo_get(self);
    if (mi == NULL) {
        return NULL;
    }
    self->handed_out = 1;
    memrt__api()->acquire(mi);
    return memrt_meminfo_as_capsule(memrt__api(), mi);
}

int memrt__meminfo_bytes(memrt_meminfo_object_t *self, memrt_bytes_t *out)
{
    static char nothing;
    memrt_meminfo_t *mi = memrt__meminfo_get(self);
    if (mi == NULL || memrt__placement_for_host(mi) < 0) {
        return -1;
    }
    void *data = memrt__api()->get_data(mi);
    *out = (memrt_bytes_t){.data = data != NULL ? data : &nothing,
                           .size = data != NULL ? memrt__api()->size(mi) : 0,
                           .readonly = memrt__api()->readonly(mi)};
    return 0;
}

static int meminfo_getbuffer(memrt_meminfo_object_t *self, Py_buffer *view, int flags)
{
    memrt_bytes_t bytes;
    if (memrt__meminfo_bytes(self, &bytes) < 0) {
        view->obj = NULL;
        return -1;
    }
    if (PyBuffer_FillInfo(view, (PyObject *)self, bytes.data, (Py_ssize_t)bytes.size,
                          bytes.readonly, flags) < 0) {
        return -1;
    }
    self->exports++;
    return 0;
}

static void meminfo_releasebuffer(memrt_meminfo_object_t *self, Py_buffer *view)
{
    (void)view;
    self->exports--;
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

static PyMethodDef methods[] = {
    {"__dlpack__", MEMRT_FAST_KEYWORDS(meminfo_dlpack), MEMRT_DLPACK_DOC},
    {"__dlpack_device__", (PyCFunction)(void (*)(void))meminfo_dlpack_device, METH_NOARGS,
     MEMRT_DLPACK_DEVICE_DOC},
    {"__arrow_c_schema__", (PyCFunction)(void (*)(void))memrt__arrow_schema_of, METH_NOARGS,
     MEMRT_ARROW_SCHEMA_DOC},
    {"__arrow_c_array__", MEMRT_FAST_KEYWORDS(memrt__arrow_array_of), MEMRT_ARROW_ARRAY_DOC},
    {"__arrow_c_device_array__", MEMRT_FAST_KEYWORDS(memrt__arrow_device_array_of),
     MEMRT_ARROW_DEVICE_ARRAY_DOC},
    {"__memrt_meminfo__", (PyCFunction)(void (*)(void))meminfo_capsule, METH_NOARGS,
     "__memrt_meminfo__() -> PyCapsule\n\n"
     "A capsule named 'memrt.meminfo' that holds a reference of its own, for C code."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(memrt_meminfo_object_t, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

#define ATTRIBUTE(NAME, DOC) {#NAME, (getter)(void (*)(void))get_##NAME, NULL, DOC, NULL}

static PyGetSetDef attributes[] = {
    ATTRIBUTE(data, "int: address of the first byte."),
    ATTRIBUTE(size, "int: bytes, as asked for."),
    ATTRIBUTE(refcount, "int: references at this moment; with threads a hint. This object is one."),
    ATTRIBUTE(parent, "object or None: for wrapped memory, the owner that keeps it alive."),
    ATTRIBUTE(external_allocator, "int or None: address of the external allocator that made it."),
    {"name", (getter)(void (*)(void))get_name, (setter)(void (*)(void))set_name,
     "str or None: name in reports, at most 63 bytes; may be set.", NULL},
    ATTRIBUTE(readonly, "bool: whether buffers and arrays over it refuse to be written."),
    ATTRIBUTE(kind, "str: 'inline', 'adopted', 'resizable' or 'block'."),
    ATTRIBUTE(policy, "str: name of the policy whose account it is on."),
    {"__array_interface__", (getter)(void (*)(void))memrt__interface_dict, NULL,
     "dict: the bytes as an array, by NumPy's array interface, version 3. Keep the MemInfo.", NULL},
    {"__array_struct__", (getter)(void (*)(void))memrt__interface_struct, NULL,
     "PyCapsule: the same as a C struct; the capsule keeps the MemInfo.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(
    type_doc,
    "One reference to a reference-counted buffer.\n\n"
    "Comes from memrt.alloc(), memrt.wrap() and memrt.meminfo(); the memory is given back when\n"
    "the last reference goes: other MemInfo objects, arrays and C code may hold more.\n"
    "Exports its bytes by the buffer protocol; two are equal when they hold the same buffer.");

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)type_doc},
    {Py_tp_new, meminfo_new},
    {Py_tp_dealloc, meminfo_dealloc},
    {Py_tp_traverse, meminfo_traverse},
    {Py_tp_clear, meminfo_clear},
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

int memrt__meminfo_setup(PyObject *module)
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
