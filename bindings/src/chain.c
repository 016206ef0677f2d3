#include "chain.h"

#include "meminfo.h"
#include "ndarray.h"
#include "nrt_meminfo.h"

/// Of what the memoryviews of one buffer share, which CPython has no name for that all versions
/// know.
static PyTypeObject *buffer_type;

int memrt__chain_setup(void)
{
    PyObject *empty = PyBytes_FromStringAndSize(NULL, 0);
    PyObject *view = empty != NULL ? PyMemoryView_FromObject(empty) : NULL;
    if (view != NULL) {
        buffer_type = Py_TYPE(((PyMemoryViewObject *)view)->mbuf); /* static: lives for good */
    }
    Py_XDECREF(view);
    Py_XDECREF(empty);
    return view != NULL ? 0 : -1;
}

/// No link is a number, a text or a container of Python's. These are most of a heap.
#define OF_PYTHON                                                                                  \
    (Py_TPFLAGS_LONG_SUBCLASS | Py_TPFLAGS_LIST_SUBCLASS | Py_TPFLAGS_TUPLE_SUBCLASS |             \
     Py_TPFLAGS_BYTES_SUBCLASS | Py_TPFLAGS_UNICODE_SUBCLASS | Py_TPFLAGS_DICT_SUBCLASS |          \
     Py_TPFLAGS_BASE_EXC_SUBCLASS | Py_TPFLAGS_TYPE_SUBCLASS)

int memrt__link_maybe(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    if (PyType_HasFeature(type, OF_PYTHON) || object == Py_None || type == &PyFloat_Type) {
        return 0;
    }
    return type == &PyArray_Type || type == memrt__binding.meminfo_type ||
           type == &PyMemoryView_Type || type == buffer_type || type == &PyCapsule_Type ||
           PyArray_Check(object) || memrt__nrt_meminfo_check(object) ||
           strcmp(type->tp_name, "DummyArray") == 0;
}

memrt_link_t memrt__link_of(PyObject *object)
{
    if (PyArray_Check(object)) {
        return memrt__array_is_block(memrt__api(), (PyArrayObject *)object) ? MEMRT_LINK_BLOCK
                                                                            : MEMRT_LINK_ARRAY;
    }
    if (memrt__meminfo_check(object)) {
        return MEMRT_LINK_MEMINFO;
    }
    if (PyMemoryView_Check(object)) {
        return MEMRT_LINK_MEMORYVIEW;
    }
    if (Py_IS_TYPE(object, buffer_type)) {
        return MEMRT_LINK_BUFFER;
    }
    if (PyCapsule_CheckExact(object)) {
        return PyCapsule_IsValid(object, MEMRT_MEMINFO_CAPSULE) ? MEMRT_LINK_CAPSULE
                                                                : MEMRT_LINK_NONE;
    }
    if (memrt__nrt_meminfo_check(object)) {
        return MEMRT_LINK_JITTED;
    }
    return strcmp(Py_TYPE(object)->tp_name, "DummyArray") == 0 ? MEMRT_LINK_STRIDES
                                                               : MEMRT_LINK_NONE;
}

static PyObject *base_of(PyArrayObject *array)
{
    /* With both flags, the base is where the data will be copied to, not where it is. */
    return PyArray_CHKFLAGS(array, NPY_ARRAY_WRITEBACKIFCOPY | NPY_ARRAY_OWNDATA)
               ? NULL
               : PyArray_BASE(array);
}

static PyObject *buffer_of(PyMemoryViewObject *view)
{
    return (view->flags & _Py_MEMORYVIEW_RELEASED) != 0 ? NULL : (PyObject *)view->mbuf;
}

static PyObject *exporter_of(_PyManagedBufferObject *buffer)
{
    return (buffer->flags & _Py_MANAGED_BUFFER_RELEASED) != 0 ? NULL : buffer->master.obj;
}

/// Stops at the first link among the attributes of an object, or in the dict of these.
static int find_link(PyObject *object, void *found)
{
    if (PyDict_CheckExact(object)) {
        return Py_TYPE(object)->tp_traverse(object, find_link, found);
    }
    if (!memrt__link_maybe(object)) {
        return 0;
    }
    *(PyObject **)found = object;
    return 1;
}

static PyObject *strided_over(PyObject *dummy)
{
    PyObject *found = NULL;
    if (PyObject_GC_IsTracked(dummy)) {
        (void)Py_TYPE(dummy)->tp_traverse(dummy, find_link, &found);
    }
    return found;
}

PyObject *memrt__link_next(PyObject *object)
{
    switch (memrt__link_of(object)) {
    case MEMRT_LINK_ARRAY:
        return base_of((PyArrayObject *)object);
    case MEMRT_LINK_MEMORYVIEW:
        return buffer_of((PyMemoryViewObject *)object);
    case MEMRT_LINK_BUFFER:
        return exporter_of((_PyManagedBufferObject *)object);
    case MEMRT_LINK_STRIDES:
        return strided_over(object);
    default:
        return NULL;
    }
}

/// A block's header is right before its data, but for tiny blocks, whose data is at no multiple of
/// its size and is what they are known by.
static int is_tiny(const void *data)
{
    return (uintptr_t)data % MEMRT_HEADER_SIZE != 0;
}

memrt_buffer_key_t memrt__meminfo_key(const memrt_meminfo_t *mi)
{
    return mi->kind == MEMRT_KIND_BLOCK && is_tiny(mi->data) ? (uintptr_t)mi->data : (uintptr_t)mi;
}

static memrt_meminfo_t *meminfo_of_block(PyArrayObject *array)
{
    char *data = PyArray_BYTES(array);
    return is_tiny(data) ? NULL : (memrt_meminfo_t *)(void *)(data - MEMRT_HEADER_SIZE);
}

memrt_meminfo_t *memrt__link_meminfo(PyObject *object)
{
    switch (memrt__link_of(object)) {
    case MEMRT_LINK_BLOCK:
        return meminfo_of_block((PyArrayObject *)object);
    case MEMRT_LINK_MEMINFO:
        return ((memrt_meminfo_object_t *)object)->mi;
    case MEMRT_LINK_JITTED:
        return memrt__nrt_meminfo_borrow(object);
    case MEMRT_LINK_CAPSULE:
        return PyCapsule_GetPointer(object, MEMRT_MEMINFO_CAPSULE);
    default:
        return NULL;
    }
}

memrt_buffer_key_t memrt__chain_key(PyObject *object)
{
    PyObject *next = object;
    for (int links = 0; next != NULL && links < MEMRT__LINKS_MAX; links++) {
        object = next;
        next = memrt__link_maybe(object) ? memrt__link_next(object) : NULL;
    }
    if (!memrt__link_maybe(object)) {
        return 0;
    }
    memrt_meminfo_t *mi = memrt__link_meminfo(object);
    if (mi != NULL) {
        return memrt__meminfo_key(mi);
    }
    return memrt__link_of(object) == MEMRT_LINK_BLOCK
               ? (uintptr_t)PyArray_DATA((PyArrayObject *)object)
               : 0;
}
