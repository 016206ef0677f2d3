#ifndef MEMRT_NUMPY_H
#define MEMRT_NUMPY_H

/// Convert MemInfos to NumPy arrays and back. Header-only, for C and C++.
///
/// Include numpy/arrayobject.h first, with NPY_TARGET_VERSION at least NPY_1_22_API_VERSION, and
/// call import_array() before any function here. `api` is the result of memrt_import().
/// Threads: every function here needs the GIL.

#include <string.h>

#include <memrt/import.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Name of a capsule that holds one reference to a MemInfo. The capsule never holds the data
/// pointer, because a resizable MemInfo may have NULL data. The capsule's context is the table.
#define MEMRT_MEMINFO_CAPSULE "memrt.meminfo"

static inline void memrt__capsule_destroy(PyObject *capsule)
{
    const memrt_api_t *api = (const memrt_api_t *)PyCapsule_GetContext(capsule);
    void *mi = PyCapsule_GetPointer(capsule, MEMRT_MEMINFO_CAPSULE);
    api->release((memrt_meminfo_t *)mi);
}

/// Register a MemInfo that C code hands to Python in tracemalloc, see memrt_trace(). Adopted memory
/// is skipped: only the code that adopted the buffer knows whether it is registered already.
static inline int memrt__tracemalloc_reached(const memrt_api_t *api, memrt_meminfo_t *mi)
{
    return mi->kind == MEMRT_KIND_ADOPTED ? 0 : memrt_trace(api, mi);
}

/// Return a new capsule that holds `mi`. The capsule's destructor releases `mi`. tracemalloc shows
/// the data from now on, except for adopted memory.
///
/// Ownership: steals the caller's reference to `mi`, also on failure.
/// Failure:   returns NULL with an exception set.
static inline PyObject *memrt_meminfo_as_capsule(const memrt_api_t *api, memrt_meminfo_t *mi)
{
    PyObject *capsule = memrt__tracemalloc_reached(api, mi) == 0
                            ? PyCapsule_New(mi, MEMRT_MEMINFO_CAPSULE, NULL)
                            : NULL;
    if (capsule == NULL) {
        api->release(mi);
        return NULL;
    }
    /* Set the destructor last: on an earlier failure this function alone releases `mi`. */
    if (PyCapsule_SetContext(capsule, (void *)(uintptr_t)api) < 0 ||
        PyCapsule_SetDestructor(capsule, memrt__capsule_destroy) < 0) {
        api->release(mi);
        Py_DECREF(capsule);
        return NULL;
    }
    return capsule;
}

/// Extend the byte range [*low, *high) by one dimension. Returns 0 when the range overflows.
static inline int memrt__dlpack_layout_extend(npy_intp dim, npy_intp stride, npy_intp *low,
                                              npy_intp *high)
{
    npy_intp reach;
    if (__builtin_mul_overflow(dim - 1, stride, &reach)) {
        return 0;
    }
    npy_intp *end = reach < 0 ? low : high;
    return !__builtin_add_overflow(*end, reach, end);
}

/// Return whether every element of a layout lies in a buffer of `size` bytes. `strides` in bytes;
/// NULL means contiguous.
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
        if (!memrt__dlpack_layout_extend(dims[i], strides != NULL ? strides[i] : step, &low,
                                         &high)) {
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

/// Return whether a dtype holds Python references or pointers, which raw memory cannot hold because
/// NumPy would have to clear them.
static inline int memrt_descr_has_references(PyArray_Descr *descr)
{
    return PyDataType_FLAGCHK(descr, NPY_ITEM_REFCOUNT) ||
           PyDataType_FLAGCHK(descr, NPY_ITEM_IS_POINTER);
}

/// Return the size of one element in bytes. NumPy 1 and 2 have different accessors for the size.
static inline npy_intp memrt__descr_size(PyArray_Descr *descr)
{
#if NPY_ABI_VERSION < 0x02000000
    return descr->elsize;
#else
    return (npy_intp)PyDataType_ELSIZE(descr);
#endif
}

/// Return 0, or -1 with BufferError set when the data of `mi` is memory of a CUDA device.
static inline int memrt__device_check(const memrt_meminfo_t *mi)
{
    if ((__atomic_load_n(&mi->flags, __ATOMIC_RELAXED) & MEMRT_FLAG_DEVICE) == 0) {
        return 0;
    }
    PyErr_SetString(PyExc_BufferError,
                    "the host cannot access memory of a CUDA device: copy the memory to the host");
    return -1;
}

/// Return 0 when an array of the given layout fits over `mi`, else -1 with an exception set.
static inline int memrt__dlpack_layout_check(const memrt_api_t *api, const memrt_meminfo_t *mi,
                                             PyArray_Descr *descr, int nd, const npy_intp *dims,
                                             const npy_intp *strides, npy_intp offset)
{
    if (memrt__device_check(mi) < 0) {
        return -1;
    }
    if (memrt_descr_has_references(descr)) {
        PyErr_Format(PyExc_TypeError,
                     "dtype over a MemInfo must not hold references to Python objects, got %R",
                     descr);
        return -1;
    }
    if (!memrt_layout_fits(api->size(mi), memrt__descr_size(descr), nd, dims, strides, offset)) {
        PyErr_Format(PyExc_ValueError,
                     "shape, strides and offset must stay inside the MemInfo, got dtype %R, offset "
                     "%zd and %zu bytes",
                     descr, (Py_ssize_t)offset, api->size(mi));
        return -1;
    }
    return 0;
}

/// Return a new array over `mi` with `base` as its base object.
/// Ownership: steals `base` and `descr`, also on failure. Failure: NULL with an exception set.
static inline PyObject *memrt__array_over(const memrt_api_t *api, memrt_meminfo_t *mi,
                                          PyObject *base, PyArray_Descr *descr, int nd,
                                          const npy_intp *dims, const npy_intp *strides,
                                          npy_intp offset, int flags)
{
    static char nothing; /* data address of an empty array over a MemInfo whose data is NULL */
    char *data = (char *)api->get_data(mi);
    data = data != NULL ? data + offset : &nothing;
    PyObject *array =
        PyArray_NewFromDescr(&PyArray_Type, descr, nd, dims, strides, data, flags, NULL);
    if (array == NULL) {
        Py_DECREF(base);
        return NULL;
    }
    if (PyArray_SetBaseObject((PyArrayObject *)array, base) < 0) {
        Py_DECREF(array); /* PyArray_SetBaseObject steals `base` also when it fails */
        return NULL;
    }
    return array;
}

/// Return a new array over the memory of `mi`, starting `offset` bytes into the data. The array's
/// base is a capsule that holds the reference, so NumPy never frees the data itself.
///
/// strides:   in bytes. NULL means C order, or Fortran order if `flags` has
///            NPY_ARRAY_F_CONTIGUOUS.
/// flags:     NPY_ARRAY_WRITEABLE requests a writable array. The flag is dropped for a read-only
///            MemInfo. NPY_ARRAY_OWNDATA is ignored.
/// Ownership: steals `mi` and `descr`, also on failure. The last view releases `mi`.
/// Failure:   returns NULL with an exception set: ValueError when an element lies outside the data,
///            TypeError for a dtype that holds references, BufferError for memory of a CUDA device,
///            MemoryError when out of memory.
static inline PyObject *memrt_meminfo_as_array(const memrt_api_t *api, memrt_meminfo_t *mi,
                                               PyArray_Descr *descr, int nd, const npy_intp *dims,
                                               const npy_intp *strides, npy_intp offset, int flags)
{
    PyObject *capsule;
    flags &= api->readonly(mi) ? ~(NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEABLE) : ~NPY_ARRAY_OWNDATA;
    if (memrt__dlpack_layout_check(api, mi, descr, nd, dims, strides, offset) < 0) {
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

/// Return whether `handler`, a NEP 49 capsule or NULL, is a memrt handler.
static inline int memrt_handler_check(const memrt_api_t *api, PyObject *handler)
{
    if (handler == NULL || !PyCapsule_IsValid(handler, "mem_handler")) {
        return 0;
    }
    PyDataMem_Handler *functions =
        (PyDataMem_Handler *)PyCapsule_GetPointer(handler, "mem_handler");
    return functions->allocator.free == api->block_free;
}

/// Return whether NumPy frees the data of `array` through a memrt handler.
static inline int memrt__array_is_block(const memrt_api_t *api, PyArrayObject *array)
{
    return PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA) &&
           memrt_handler_check(api, PyArray_HANDLER(array));
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

/// Return whether the type of `object` has a method `__memrt_meminfo__()`, as memrt.MemInfo does.
/// Failure: -1 with MemoryError set.
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
    PyObject *base = PyArray_BASE(array);
    /* With both flags the array owns its data; the base is only the target of the write-back. */
    if (PyArray_CHKFLAGS(array, NPY_ARRAY_WRITEBACKIFCOPY | NPY_ARRAY_OWNDATA)) {
        return NULL;
    }
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

/// Return the last object of the base chain of `object` as a new reference: an array that owns its
/// data, a capsule, an exporter of a buffer, or an array or view without a base. A cyclic chain
/// gives an arbitrary link. Failure: NULL with MemoryError set.
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

/// Store a new reference to the MemInfo of a capsule `memrt.meminfo` in `*out` and return 0.
/// Failure: -1 with an exception set for any other object.
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

/// Find the MemInfo behind an array, memoryview, capsule `memrt.meminfo` or memrt.MemInfo by
/// walking the base chain, and store a new reference in `*out`.
///
/// Ownership: the caller releases `*out`.
/// Failure:   returns -1 with an exception set: ValueError when memrt does not manage the memory,
///            MemoryError, or the exception of `__memrt_meminfo__()`. `*out` is unchanged then.
///            Returns 0 on success.
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
