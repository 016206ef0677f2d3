#ifndef MEMRT_NUMPY_H
#define MEMRT_NUMPY_H

/// MemInfos as NumPy arrays and back, header-only, C and C++.
///
/// Include numpy/arrayobject.h first, with NPY_TARGET_VERSION at least NPY_1_22_API_VERSION, and
/// have import_array() done. `api` is what memrt_import() returned. Everything here needs the GIL.

#include <string.h>

#include <memrt/import.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Name of a capsule that holds one reference to a MemInfo (never its data pointer, which may be
/// NULL for a resizable one). The capsule's context is the table.
#define MEMRT_MEMINFO_CAPSULE "memrt.meminfo"

static inline void memrt__capsule_destroy(PyObject *capsule)
{
    const memrt_api_t *api = (const memrt_api_t *)PyCapsule_GetContext(capsule);
    void *mi = PyCapsule_GetPointer(capsule, MEMRT_MEMINFO_CAPSULE);
    api->release((memrt_meminfo_t *)mi);
}

/// Show what C code made and hands to Python, see memrt_trace(); of adopted memory only its maker
/// knows whether somebody else shows it.
static inline int memrt__trace_reached(const memrt_api_t *api, memrt_meminfo_t *mi)
{
    return mi->kind == MEMRT_KIND_ADOPTED ? 0 : memrt_trace(api, mi);
}

/// New capsule holding `mi`; its destructor releases. From then on tracemalloc shows its data.
///
/// Ownership: steals the caller's reference to `mi`, also on failure.
/// Failure:   NULL with an exception.
static inline PyObject *memrt_meminfo_as_capsule(const memrt_api_t *api, memrt_meminfo_t *mi)
{
    PyObject *capsule =
        memrt__trace_reached(api, mi) == 0 ? PyCapsule_New(mi, MEMRT_MEMINFO_CAPSULE, NULL) : NULL;
    if (capsule == NULL) {
        api->release(mi);
        return NULL;
    }
    /* The destructor comes last: until it stands, nobody but this function gives `mi` back. */
    if (PyCapsule_SetContext(capsule, (void *)(uintptr_t)api) < 0 ||
        PyCapsule_SetDestructor(capsule, memrt__capsule_destroy) < 0) {
        api->release(mi);
        Py_DECREF(capsule);
        return NULL;
    }
    return capsule;
}

/// Widen the byte range [*low, *high) by a dimension; 0 when it overflows.
static inline int memrt__layout_extend(npy_intp dim, npy_intp stride, npy_intp *low, npy_intp *high)
{
    npy_intp reach;
    if (__builtin_mul_overflow(dim - 1, stride, &reach)) {
        return 0;
    }
    npy_intp *end = reach < 0 ? low : high;
    return !__builtin_add_overflow(*end, reach, end);
}

/// Whether every element of a layout lies in a buffer of `size` bytes. `strides` NULL: contiguous.
static inline int memrt_layout_fits(size_t size, npy_intp itemsize, int nd, const npy_intp *dims,
                                    const npy_intp *strides, npy_intp offset)
{
    npy_intp low = offset, high, step = itemsize;
    int empty = 0;
    if (size > (size_t)NPY_MAX_INTP || __builtin_add_overflow(offset, itemsize, &high)) {
        return 0;
    }
    for (int i = nd - 1; i >= 0; i--) {
        if (dims[i] < 0) {
            return 0;
        }
        empty |= dims[i] == 0;
    }
    for (int i = nd - 1; !empty && i >= 0; i--) {
        if (!memrt__layout_extend(dims[i], strides != NULL ? strides[i] : step, &low, &high)) {
            return 0;
        }
        if (strides == NULL && __builtin_mul_overflow(step, dims[i], &step)) {
            return 0;
        }
    }
    if (empty) {
        high = low;
    }
    return low >= 0 && high >= low && (size_t)high <= size;
}

/// Whether a dtype holds references that NumPy has to clear, so that it cannot live in raw memory.
static inline int memrt_descr_has_references(PyArray_Descr *descr)
{
    return PyDataType_FLAGCHK(descr, NPY_ITEM_REFCOUNT) ||
           PyDataType_FLAGCHK(descr, NPY_ITEM_IS_POINTER);
}

/// Bytes of one element; the way to ask differs between the headers of NumPy 1 and 2.
static inline npy_intp memrt__descr_size(PyArray_Descr *descr)
{
#if NPY_ABI_VERSION < 0x02000000
    return descr->elsize;
#else
    return (npy_intp)PyDataType_ELSIZE(descr);
#endif
}

/// 0 unless the bytes of `mi` are a CUDA device's, else -1 with BufferError.
static inline int memrt__device_check(const memrt_meminfo_t *mi)
{
    if ((__atomic_load_n(&mi->flags, __ATOMIC_RELAXED) & MEMRT_FLAG_DEVICE) == 0) {
        return 0;
    }
    PyErr_SetString(PyExc_BufferError,
                    "the memory is a CUDA device's, which the host cannot touch: copy it");
    return -1;
}

/// 0 when an array like that may be laid over `mi`, else -1 with an exception.
static inline int memrt__layout_check(const memrt_api_t *api, const memrt_meminfo_t *mi,
                                      PyArray_Descr *descr, int nd, const npy_intp *dims,
                                      const npy_intp *strides, npy_intp offset)
{
    if (memrt__device_check(mi) < 0) {
        return -1;
    }
    if (memrt_descr_has_references(descr)) {
        PyErr_Format(PyExc_TypeError,
                     "dtype %R holds references to Python objects: it cannot lie over a MemInfo",
                     descr);
        return -1;
    }
    if (!memrt_layout_fits(api->size(mi), memrt__descr_size(descr), nd, dims, strides, offset)) {
        PyErr_Format(PyExc_ValueError,
                     "an array of that shape, dtype %R, strides and offset %zd does not fit into "
                     "the %zu bytes of the MemInfo",
                     descr, (Py_ssize_t)offset, api->size(mi));
        return -1;
    }
    return 0;
}

/// New array over `mi` with `base` as its base, or NULL. Steals `base` and `descr`, also on
/// failure.
static inline PyObject *memrt__array_over(const memrt_api_t *api, memrt_meminfo_t *mi,
                                          PyObject *base, PyArray_Descr *descr, int nd,
                                          const npy_intp *dims, const npy_intp *strides,
                                          npy_intp offset, int flags)
{
    static char nothing; /* the address of an array without elements over a MemInfo without data */
    char *data = (char *)api->get_data(mi);
    data = data != NULL ? data + offset : &nothing;
    PyObject *array =
        PyArray_NewFromDescr(&PyArray_Type, descr, nd, dims, strides, data, flags, NULL);
    if (array == NULL) {
        Py_DECREF(base);
        return NULL;
    }
    if (PyArray_SetBaseObject((PyArrayObject *)array, base) < 0) {
        Py_DECREF(array); /* SetBaseObject took `base`, also now */
        return NULL;
    }
    return array;
}

/// New array over the memory of `mi`: it starts `offset` bytes into the data; its base is a capsule
/// that holds the reference, so NumPy never frees the data itself.
///
/// strides: in bytes; NULL for C order, or Fortran order with NPY_ARRAY_F_CONTIGUOUS in `flags`.
/// flags:     NPY_ARRAY_WRITEABLE for an array that may be written, which a read-only MemInfo never
///            gives; OWNDATA is ignored.
/// Ownership: steals `mi` and `descr`, also on failure; the last view gives `mi` back.
/// Failure:   NULL: ValueError when an element lies outside the data, TypeError for a dtype that
///            holds references, BufferError for memory of a CUDA device, MemoryError.
static inline PyObject *memrt_meminfo_as_array(const memrt_api_t *api, memrt_meminfo_t *mi,
                                               PyArray_Descr *descr, int nd, const npy_intp *dims,
                                               const npy_intp *strides, npy_intp offset, int flags)
{
    PyObject *capsule;
    flags &= api->readonly(mi) ? ~(NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEABLE) : ~NPY_ARRAY_OWNDATA;
    if (memrt__layout_check(api, mi, descr, nd, dims, strides, offset) < 0) {
        Py_DECREF(descr);
        api->release(mi);
        return NULL;
    }
    capsule = memrt_meminfo_as_capsule(api, mi);
    if (capsule == NULL) {
        Py_DECREF(descr);
        return NULL;
    }
    return memrt__array_over(api, mi, capsule, descr, nd, dims, strides, offset, flags);
}

/// Whether `handler`, a NEP 49 capsule or NULL, is one of memrt's.
static inline int memrt_handler_check(const memrt_api_t *api, PyObject *handler)
{
    if (handler == NULL || !PyCapsule_IsValid(handler, "mem_handler")) {
        return 0;
    }
    PyDataMem_Handler *functions =
        (PyDataMem_Handler *)PyCapsule_GetPointer(handler, "mem_handler");
    return functions->allocator.free == api->block_free;
}

/// Whether NumPy frees the data of `array` by one of memrt's handlers.
static inline int memrt__array_is_block(const memrt_api_t *api, PyArrayObject *array)
{
    return PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA) &&
           memrt_handler_check(api, PyArray_HANDLER(array));
}

/// An attribute, a new reference. NULL when there is none, and with an exception when there is no
/// memory to tell.
static inline PyObject *memrt__attribute(PyObject *object, const char *name)
{
    PyObject *value = PyObject_GetAttrString(object, name);
    if (value == NULL && !PyErr_ExceptionMatches(PyExc_MemoryError)) {
        PyErr_Clear();
    }
    return value;
}

/// Whether `object` says by `__memrt_meminfo__()` which MemInfo it holds, as memrt.MemInfo does. -1
/// with MemoryError.
static inline int memrt_exporter_check(PyObject *object)
{
    PyObject *method = memrt__attribute((PyObject *)Py_TYPE(object), "__memrt_meminfo__");
    if (method == NULL) {
        return PyErr_Occurred() ? -1 : 0;
    }
    Py_DECREF(method);
    return 1;
}

/// What an array takes its memory from, or NULL. New reference.
static inline PyObject *memrt__array_next(PyArrayObject *array)
{
    PyObject *base = PyArray_BASE(array);
    /* With both flags, the base is where the data will be copied to, not where it is. */
    if (PyArray_CHKFLAGS(array, NPY_ARRAY_WRITEBACKIFCOPY | NPY_ARRAY_OWNDATA)) {
        return NULL;
    }
    Py_XINCREF(base);
    return base;
}

/// What any link of a chain takes its memory from, a new reference; NULL at the end, and with
/// MemoryError.
static inline PyObject *memrt__chain_next(PyObject *object)
{
    const char *link = NULL;
    if (PyArray_Check(object)) {
        return memrt__array_next((PyArrayObject *)object);
    }
    if (PyMemoryView_Check(object)) {
        link = "obj"; /* an error once it is released, when the struct's pointer is stale */
    } else if (strcmp(Py_TYPE(object)->tp_name, "DummyArray") == 0) {
        link = "base"; /* what numpy's as_strided leaves behind */
    }
    return link != NULL ? memrt__attribute(object, link) : NULL;
}

/// More links than any chain has that ends: an object may be its own base by a detour.
#define MEMRT__LINKS_MAX 100000

/// The object at which the chain of bases of `object` ends, a new reference: an array that owns its
/// data, a capsule, an exporter of a buffer, an array or view without any base. Of a chain that
/// leads nowhere, any link. NULL with MemoryError.
static inline PyObject *memrt_object_anchor(const memrt_api_t *api, PyObject *object)
{
    Py_INCREF(object);
    for (int links = 0; links < MEMRT__LINKS_MAX; links++) {
        if (PyArray_Check(object) && memrt__array_is_block(api, (PyArrayObject *)object)) {
            break;
        }
        PyObject *next = memrt__chain_next(object);
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
    PyErr_Format(
        PyExc_ValueError,
        "the memory of this %.200s is not managed by memrt: memrt.adopt() takes it over or "
        "copies it",
        Py_TYPE(object)->tp_name);
    return -1;
}

/// From a capsule `memrt.meminfo`: a new reference in `*out`; -1 with an exception for another one.
static inline int memrt_capsule_meminfo(const memrt_api_t *api, PyObject *capsule,
                                        memrt_meminfo_t **out)
{
    memrt_meminfo_t *mi = (memrt_meminfo_t *)PyCapsule_GetPointer(capsule, MEMRT_MEMINFO_CAPSULE);
    if (mi == NULL) {
        return -1;
    }
    api->acquire(mi);
    *out = mi;
    return 0;
}

/// The same by asking an object for such a capsule.
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

/// The MemInfo that the end of a chain holds, for an error message about `object`.
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

/// The MemInfo behind an array, memoryview, capsule `memrt.meminfo` or memrt.MemInfo, found by
/// walking the chain of bases: a new reference in `*out`, to be released by the caller.
///
/// Returns 0, or -1 with an exception: ValueError when the memory is not memrt's (`*out` is left as
/// it was), MemoryError.
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
