#ifndef MEMRT_NUMPY_ARRAY_MEMINFO_H
#define MEMRT_NUMPY_ARRAY_MEMINFO_H

/// Inline code of memrt/numpy.h: from arrays, along the base chain, to MemInfos.

#include <string.h>

#include <memrt/numpy.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Read the member `flags`, `base` or `mem_handler` of an array. With the GIL off, another thread
/// may adopt the array at the same time, and changes `flags` last.
#ifdef Py_GIL_DISABLED
#define MEMRT__ARRAY_MEMBER(array, member)                                                         \
    __atomic_load_n(&((PyArrayObject_fields *)(array))->member, __ATOMIC_ACQUIRE)
#else
#define MEMRT__ARRAY_MEMBER(array, member) (((PyArrayObject_fields *)(array))->member)
#endif

static inline int memrt_handler_check(const memrt_api_t *api, PyObject *handler)
{
    if (handler == NULL || !PyCapsule_IsValid(handler, "mem_handler")) {
        return 0;
    }
    PyDataMem_Handler *functions =
        (PyDataMem_Handler *)PyCapsule_GetPointer(handler, "mem_handler");
    return functions->allocator.free == api->block_free;
}

static inline int memrt__array_owns_data(PyArrayObject *array)
{
    return (MEMRT__ARRAY_MEMBER(array, flags) & NPY_ARRAY_OWNDATA) != 0;
}

/// Return whether NumPy frees the data of `array` through a memrt handler.
static inline int memrt__array_is_block(const memrt_api_t *api, PyArrayObject *array)
{
    return memrt__array_owns_data(array) &&
           memrt_handler_check(api, MEMRT__ARRAY_MEMBER(array, mem_handler));
}

/// Return an attribute of `object` as a new reference. NULL without an exception: the attribute
/// cannot be read. NULL with MemoryError: out of memory.
static inline PyObject *memrt__attribute(PyObject *object, const char *name)
{
    PyObject *value = PyObject_GetAttrString(object, name);
    if (value == NULL && !PyErr_ExceptionMatches(PyExc_MemoryError)) {
        PyErr_Clear();
    }
    return value;
}

static inline int memrt_exporter_check(PyObject *object)
{
    PyObject *method = memrt__attribute((PyObject *)Py_TYPE(object), "__memrt_meminfo__");
    if (method == NULL) {
        return PyErr_Occurred() ? -1 : 0;
    }
    Py_DECREF(method);
    return 1;
}

/// Return the object that an array takes its memory from as a new reference, or NULL.
static inline PyObject *memrt__array_next(PyArrayObject *array)
{
    const int both = NPY_ARRAY_WRITEBACKIFCOPY | NPY_ARRAY_OWNDATA;
    /* With both flags the array owns its data; the base is only the target of the write-back. */
    if ((MEMRT__ARRAY_MEMBER(array, flags) & both) == both) {
        return NULL;
    }
    PyObject *base = MEMRT__ARRAY_MEMBER(array, base);
    Py_XINCREF(base);
    return base;
}

/// Return the object that a link of a base chain takes its memory from, as a new reference. NULL at
/// the end of the chain; NULL with MemoryError set when out of memory.
static inline PyObject *memrt__base_chain_next(PyObject *object)
{
    const char *link = NULL;
    if (PyArray_Check(object)) {
        return memrt__array_next((PyArrayObject *)object);
    }
    if (PyMemoryView_Check(object)) {
        link = "obj"; /* raises after release(), when the pointer in the C struct is stale */
    } else if (strcmp(Py_TYPE(object)->tp_name, "DummyArray") == 0) {
        link = "base"; /* base object of arrays from NumPy's as_strided */
    }
    return link != NULL ? memrt__attribute(object, link) : NULL;
}

/// Limit on followed links, far above the length of a finite chain. Bases may form a cycle.
#define MEMRT__LINKS_MAX 100000

static inline PyObject *memrt_object_anchor(const memrt_api_t *api, PyObject *object)
{
    Py_INCREF(object);
    for (int links = 0; links < MEMRT__LINKS_MAX; links++) {
        if (PyArray_Check(object) && memrt__array_is_block(api, (PyArrayObject *)object)) {
            break;
        }
        PyObject *next = memrt__base_chain_next(object);
        if (next == NULL) {
            break;
        }
        Py_DECREF(object);
        object = next;
    }
    if (PyErr_Occurred()) {
        Py_CLEAR(object);
    }
    return object;
}

static inline int memrt__raise_foreign(PyObject *object)
{
    PyErr_Format(PyExc_ValueError,
                 "the memory of the %.200s is not managed by memrt: call memrt.adopt() to take "
                 "over or copy the memory",
                 Py_TYPE(object)->tp_name);
    return -1;
}

/// Call `__memrt_meminfo__()` of `exporter` and read the capsule like memrt_capsule_meminfo().
static inline int memrt__exporter_meminfo(const memrt_api_t *api, PyObject *exporter,
                                          memrt_meminfo_t **out)
{
    PyObject *capsule = PyObject_CallMethod(exporter, "__memrt_meminfo__", NULL);
    if (capsule == NULL) {
        return -1;
    }
    int result = memrt_capsule_meminfo(api, capsule, out);
    Py_DECREF(capsule);
    return result;
}

static inline int memrt__block_meminfo(const memrt_api_t *api, PyArrayObject *array,
                                       memrt_meminfo_t **out)
{
    memrt_status_t status = api->block_meminfo(PyArray_DATA(array), out);
    if (status == MEMRT_OK) {
        return 0;
    }
    PyErr_SetString(status == MEMRT_ENOMEM ? PyExc_MemoryError : PyExc_RuntimeError,
                    api->status_text(status));
    return -1;
}

/// Get the MemInfo held by `anchor`, the end of a base chain. Error messages name `object`.
static inline int memrt__anchor_meminfo(const memrt_api_t *api, PyObject *anchor, PyObject *object,
                                        memrt_meminfo_t **out)
{
    if (PyArray_Check(anchor)) {
        return memrt__array_is_block(api, (PyArrayObject *)anchor)
                   ? memrt__block_meminfo(api, (PyArrayObject *)anchor, out)
                   : memrt__raise_foreign(object);
    }
    if (PyCapsule_IsValid(anchor, MEMRT_MEMINFO_CAPSULE)) {
        return memrt_capsule_meminfo(api, anchor, out);
    }
    int exports = memrt_exporter_check(anchor);
    if (exports <= 0) {
        return exports == 0 ? memrt__raise_foreign(object) : -1;
    }
    return memrt__exporter_meminfo(api, anchor, out);
}

static inline int memrt_array_meminfo(const memrt_api_t *api, PyObject *object,
                                      memrt_meminfo_t **out)
{
    PyObject *anchor = memrt_object_anchor(api, object);
    if (anchor == NULL) {
        return -1;
    }
    int result = memrt__anchor_meminfo(api, anchor, object, out);
    Py_DECREF(anchor);
    return result;
}

#ifdef __cplusplus
}
#endif

#endif
