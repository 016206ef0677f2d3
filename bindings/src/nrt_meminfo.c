#include "nrt_meminfo.h"

#include "ndarray.h"
#include "owner.h"
#include "placement.h"
#include "spares.h"

typedef struct nrt_meminfo {
    PyObject_HEAD memrt_meminfo_t *mi; ///< NULL until it is built
} nrt_meminfo_t;

static PyTypeObject *nrt_meminfo_type;
static memrt_spares_t spares; ///< of exactly that type

static memrt_meminfo_t *mi_of(PyObject *self)
{
    return ((nrt_meminfo_t *)self)->mi;
}

static PyObject *new_object(void)
{
    PyObject *spare = memrt__spares_take(&spares);
    return spare != NULL ? PyObject_Init(spare, nrt_meminfo_type)
                         : nrt_meminfo_type->tp_alloc(nrt_meminfo_type, 0);
}

PyObject *memrt__nrt_meminfo_object(memrt_meminfo_t *mi)
{
    PyObject *self = new_object();
    if (self == NULL) {
        memrt__api()->release(mi);
        return NULL;
    }
    ((nrt_meminfo_t *)self)->mi = mi;
    return self;
}

memrt_meminfo_t *memrt__nrt_meminfo_from_pyobject(PyObject *object)
{
    memrt__api()->acquire(mi_of(object));
    return mi_of(object);
}

int memrt__nrt_meminfo_check(PyObject *object)
{
    return nrt_meminfo_type != NULL && PyObject_TypeCheck(object, nrt_meminfo_type);
}

memrt_meminfo_t *memrt__nrt_meminfo_borrow(PyObject *object)
{
    return mi_of(object);
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
            PyErr_SetString(PyExc_ValueError, "NULL is the address of no MemInfo");
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
    if (mi_of(self) != NULL) {
        memrt__api()->release(mi_of(self));
    }
    if (type != nrt_meminfo_type || !memrt__spares_put(&spares, self)) {
        type->tp_free(self);
    }
    Py_DECREF(type);
}

static PyObject *nrt_meminfo_repr(PyObject *self)
{
    char line[256];
    memrt__api()->dump(mi_of(self), line, sizeof(line));
    return PyUnicode_FromFormat("<numba %s>", line);
}

static int nrt_meminfo_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    memrt_meminfo_t *mi = mi_of(self);
    if (memrt__placement_for_host(mi) < 0) {
        view->obj = NULL;
        return -1;
    }
    return PyBuffer_FillInfo(view, self, memrt__api()->get_data(mi),
                             (Py_ssize_t)memrt__api()->size(mi), 0, flags);
}

static PyObject *acquire(PyObject *self, PyObject *unused)
{
    (void)unused;
    memrt__api()->acquire(mi_of(self));
    Py_RETURN_NONE;
}

static PyObject *release(PyObject *self, PyObject *unused)
{
    (void)unused;
    memrt__api()->release(mi_of(self));
    Py_RETURN_NONE;
}

/// So that memrt.meminfo() and memrt/numpy.h find the MemInfo behind arrays of compiled code.
static PyObject *capsule(PyObject *self, PyObject *unused)
{
    (void)unused;
    return memrt_meminfo_as_capsule(memrt__api(), memrt__nrt_meminfo_from_pyobject(self));
}

static PyObject *get_data(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromVoidPtr(memrt__api()->get_data(mi_of(self)));
}

static PyObject *get_size(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(memrt__api()->size(mi_of(self)));
}

static PyObject *get_refcount(PyObject *self, void *unused)
{
    (void)unused;
    if (memrt__api()->get_data(mi_of(self)) == NULL) {
        PyErr_SetString(PyExc_ValueError, "invalid MemInfo");
        return NULL;
    }
    return PyLong_FromSize_t(memrt__api()->refcount(mi_of(self)));
}

static PyObject *get_external_allocator(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromVoidPtr(memrt__api()->external_allocator(mi_of(self)));
}

static PyObject *get_parent(PyObject *self, void *unused)
{
    (void)unused;
    memrt_owner_t *owner = memrt__owner_of(mi_of(self));
    return Py_NewRef(owner != NULL && owner->object != NULL ? owner->object : Py_None);
}

static PyMethodDef methods[] = {
    {"acquire", acquire, METH_NOARGS, "Take one reference more."},
    {"release", release, METH_NOARGS, "Give up one reference, which must have been acquired."},
    {"__memrt_meminfo__", capsule, METH_NOARGS, "A capsule 'memrt.meminfo' with a reference."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"data", get_data, NULL, "int: address of the first byte.", NULL},
    {"size", get_size, NULL, "int: bytes.", NULL},
    {"refcount", get_refcount, NULL, "int: references at this moment.", NULL},
    {"external_allocator", get_external_allocator, NULL,
     "int: address of the external allocator that made it, 0 for none.", NULL},
    {"parent", get_parent, NULL, "object or None: what keeps foreign memory alive.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     (void *)"One reference to a MemInfo, stolen from an address: Numba's own view of it."},
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
