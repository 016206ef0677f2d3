#include "types/nrt_meminfo.h"

#include "core/device_sync.h"
#include "core/owner.h"
#include "support/free_list.h"
#include "support/ndarray.h"

typedef struct nrt_meminfo {
    PyObject_HEAD memrt_meminfo_t *mi; ///< NULL until construction is complete
} nrt_meminfo_t;

static PyTypeObject *nrt_meminfo_type;
static memrt_free_list_t free_list; ///< free list for objects of exactly this type

static memrt_meminfo_t *get_mi(PyObject *self)
{
    return ((nrt_meminfo_t *)self)->mi;
}

static PyObject *allocate_object(void)
{
    PyObject *recycled = memrt__free_list_take(&free_list);
    return recycled != NULL ? PyObject_Init(recycled, nrt_meminfo_type)
                            : nrt_meminfo_type->tp_alloc(nrt_meminfo_type, 0);
}

PyObject *memrt__nrt_meminfo_object(memrt_meminfo_t *mi)
{
    PyObject *self = allocate_object();
    if (self == NULL) {
        memrt__api()->release(mi);
        return NULL;
    }
    ((nrt_meminfo_t *)self)->mi = mi;
    return self;
}

memrt_meminfo_t *memrt__nrt_meminfo_from_pyobject(PyObject *object)
{
    memrt__api()->acquire(get_mi(object));
    return get_mi(object);
}

int memrt__nrt_meminfo_check(PyObject *object)
{
    return nrt_meminfo_type != NULL && PyObject_TypeCheck(object, nrt_meminfo_type);
}

memrt_meminfo_t *memrt__nrt_meminfo_borrow(PyObject *object)
{
    return get_mi(object);
}

static PyObject *nrt_meminfo_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"ptr", NULL};
    PyObject *address;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:_MemInfo", keywords, &PyLong_Type,
                                     &address)) {
        return NULL;
    }
    memrt_meminfo_t *mi = PyLong_AsVoidPtr(address);
    if (mi == NULL) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "ptr must be the address of a MemInfo, got NULL");
        }
        return NULL;
    }
    PyObject *self = type->tp_alloc(type, 0);
    if (self != NULL) {
        ((nrt_meminfo_t *)self)->mi = mi;
    }
    return self;
}

static void nrt_meminfo_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (get_mi(self) != NULL) {
        memrt__api()->release(get_mi(self));
    }
    if (type != nrt_meminfo_type || !memrt__free_list_put(&free_list, self)) {
        type->tp_free(self);
    }
    Py_DECREF(type);
}

static PyObject *nrt_meminfo_repr(PyObject *self)
{
    char line[256];
    memrt__api()->dump(get_mi(self), line, sizeof(line));
    return PyUnicode_FromFormat("<numba %s>", line);
}

static int nrt_meminfo_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    memrt_meminfo_t *mi = get_mi(self);
    if (memrt__device_prepare_host(mi) < 0) {
        view->obj = NULL;
        return -1;
    }
    return PyBuffer_FillInfo(view, self, memrt__api()->get_data(mi),
                             (Py_ssize_t)memrt__api()->size(mi), memrt__api()->readonly(mi), flags);
}

static PyObject *nrt_meminfo_acquire(PyObject *self, PyObject *unused)
{
    (void)unused;
    memrt__api()->acquire(get_mi(self));
    Py_RETURN_NONE;
}

static PyObject *nrt_meminfo_release(PyObject *self, PyObject *unused)
{
    (void)unused;
    memrt__api()->release(get_mi(self));
    Py_RETURN_NONE;
}

/// Return a capsule `memrt.meminfo`, so that memrt.meminfo() and memrt/numpy.h find the MemInfo
/// behind arrays of compiled code.
static PyObject *nrt_meminfo_as_capsule(PyObject *self, PyObject *unused)
{
    (void)unused;
    return memrt_meminfo_as_capsule(memrt__api(), memrt__nrt_meminfo_from_pyobject(self));
}

static PyObject *get_data(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromVoidPtr(memrt__api()->get_data(get_mi(self)));
}

static PyObject *get_size(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(memrt__api()->size(get_mi(self)));
}

static PyObject *get_refcount(PyObject *self, void *unused)
{
    (void)unused;
    if (memrt__api()->get_data(get_mi(self)) == NULL) {
        PyErr_SetString(PyExc_ValueError, "invalid MemInfo");
        return NULL;
    }
    return PyLong_FromSize_t(memrt__api()->refcount(get_mi(self)));
}

static PyObject *get_external_allocator(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromVoidPtr(memrt__api()->external_allocator(get_mi(self)));
}

static PyObject *get_parent(PyObject *self, void *unused)
{
    (void)unused;
    memrt_owner_t *owner = memrt__owner_of(get_mi(self));
    return Py_NewRef(owner != NULL && owner->object != NULL ? owner->object : Py_None);
}

static PyMethodDef methods[] = {
    {"acquire", nrt_meminfo_acquire, METH_NOARGS, "Acquire one more reference."},
    {"release", nrt_meminfo_release, METH_NOARGS, "Release a reference taken by acquire()."},
    {"__memrt_meminfo__", nrt_meminfo_as_capsule, METH_NOARGS,
     "Return a capsule 'memrt.meminfo' with a reference."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"data", get_data, NULL, "int: address of the first byte.", NULL},
    {"size", get_size, NULL, "int: bytes.", NULL},
    {"refcount", get_refcount, NULL, "int: references at the moment of the call.", NULL},
    {"external_allocator", get_external_allocator, NULL,
     "int: address of the external allocator of the memory, 0 for none.", NULL},
    {"parent", get_parent, NULL, "object or None: owner that keeps foreign memory alive.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     (void *)"Hold a reference to a MemInfo, stolen from an address, as Numba's class does."},
    {Py_tp_new, nrt_meminfo_new},
    {Py_tp_dealloc, nrt_meminfo_dealloc},
    {Py_tp_repr, nrt_meminfo_repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_bf_getbuffer, nrt_meminfo_getbuffer},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "_nrt_python._MemInfo",
    .basicsize = sizeof(nrt_meminfo_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

int memrt__nrt_meminfo_setup(PyObject *module)
{
    if (nrt_meminfo_type == NULL) {
        nrt_meminfo_type = (PyTypeObject *)PyType_FromSpec(&spec);
    }
    if (nrt_meminfo_type == NULL) {
        return -1;
    }
    return PyModule_AddObjectRef(module, "_MemInfo", (PyObject *)nrt_meminfo_type);
}
