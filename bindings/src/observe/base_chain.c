#include "observe/base_chain.h"

#include "core/meminfo_object.h"
#include "support/ndarray.h"
#include "types/nrt_meminfo.h"

/// Type of the managed buffer shared by the memoryviews of an exporter. CPython has no name for the
/// type that works in all versions.
static PyTypeObject *buffer_type;

int memrt__base_chain_setup(void)
{
    PyObject *empty = PyBytes_FromStringAndSize(NULL, 0);
    PyObject *view = empty != NULL ? PyMemoryView_FromObject(empty) : NULL;
    if (view != NULL) {
        buffer_type = Py_TYPE(((PyMemoryViewObject *)view)->mbuf); /* a static type */
    }
    Py_XDECREF(view);
    Py_XDECREF(empty);
    return view != NULL ? 0 : -1;
}

/// Type flags of numbers, texts and containers of Python, which are never links. Most objects of a
/// program have at least one flag.
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
    if (memrt__nrt_meminfo_check(
            object)) { /* GCOV_EXCL_BR_LINE: ./dev suites numba tests these objects */
        return MEMRT_LINK_JITTED;
    }
    return strcmp(Py_TYPE(object)->tp_name, "DummyArray") == 0 ? MEMRT_LINK_STRIDES
                                                               : MEMRT_LINK_NONE;
}

/// Return the base whose memory an array uses, or NULL. Borrowed.
static PyObject *get_array_base(PyArrayObject *array)
{
    /* With both flags set, the base is the target of a later copy, not the owner of the data. */
    return PyArray_CHKFLAGS(array, NPY_ARRAY_WRITEBACKIFCOPY | NPY_ARRAY_OWNDATA)
               ? NULL
               : PyArray_BASE(array);
}

/// Return the managed buffer of a memoryview, or NULL after its release. Borrowed.
static PyObject *get_view_buffer(PyMemoryViewObject *view)
{
    return (view->flags & _Py_MEMORYVIEW_RELEASED) != 0 ? NULL : (PyObject *)view->mbuf;
}

/// Return the exporter of a managed buffer, or NULL after its release. Borrowed.
static PyObject *get_buffer_exporter(_PyManagedBufferObject *buffer)
{
    return (buffer->flags & _Py_MANAGED_BUFFER_RELEASED) != 0 ? NULL : buffer->master.obj;
}

/// Stop the traversal at the first link among the attributes of an object, or in its attribute
/// dict.
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

/// Return the link that a DummyArray of as_strided keeps alive, or NULL. Borrowed.
static PyObject *find_strided_link(PyObject *dummy)
{
    PyObject *found = NULL;
    /* GCOV_EXCL_BR_START: an instance of a Python class is always tracked */
    if (PyObject_GC_IsTracked(dummy)) {
        /* GCOV_EXCL_BR_STOP */
        (void)Py_TYPE(dummy)->tp_traverse(dummy, find_link, &found);
    }
    return found;
}

PyObject *memrt__link_next(PyObject *object)
{
    switch (memrt__link_of(object)) {
    case MEMRT_LINK_ARRAY:
        return get_array_base((PyArrayObject *)object);
    case MEMRT_LINK_MEMORYVIEW:
        return get_view_buffer((PyMemoryViewObject *)object);
    case MEMRT_LINK_BUFFER:
        return get_buffer_exporter((_PyManagedBufferObject *)object);
    case MEMRT_LINK_STRIDES:
        return find_strided_link(object);
    default:
        return NULL;
    }
}

/// Return whether `data` belongs to a tiny block. The header of any other block lies directly
/// before its data. The data of a tiny block is never at a multiple of the header size, and is the
/// key of the buffer. Blocks of a policy with an alignment of 16 are at no such multiple either,
/// but have `lead` where the header of a tiny block has its size.
static int is_tiny_block(const void *data)
{
    const memrt_meminfo_t *mi =
        (const memrt_meminfo_t *)(const void *)((const char *)data - MEMRT_HEADER_SIZE);
    return (uintptr_t)data % MEMRT_HEADER_SIZE != 0 &&
           ((uint16_t)mi->lead <= MEMRT_TINY_MAX || mi->data != data);
}

memrt_buffer_key_t memrt__meminfo_key(const memrt_meminfo_t *mi)
{
    return mi->kind == MEMRT_KIND_BLOCK && is_tiny_block(mi->data) ? (uintptr_t)mi->data
                                                                   : (uintptr_t)mi;
}

/// Return the MemInfo in the header of a block, or NULL for a tiny block.
static memrt_meminfo_t *get_block_meminfo(PyArrayObject *array)
{
    char *data = PyArray_BYTES(array);
    return is_tiny_block(data) ? NULL : (memrt_meminfo_t *)(void *)(data - MEMRT_HEADER_SIZE);
}

memrt_meminfo_t *memrt__link_meminfo(PyObject *object)
{
    switch (memrt__link_of(
        object)) { /* GCOV_EXCL_BR_LINE: ./dev suites numba tests MEMRT_LINK_JITTED */
    case MEMRT_LINK_BLOCK:
        return get_block_meminfo((PyArrayObject *)object);
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

memrt_buffer_key_t memrt__base_chain_key(PyObject *object)
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
