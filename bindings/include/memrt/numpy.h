#ifndef MEMRT_NUMPY_H
#define MEMRT_NUMPY_H

/// Convert MemInfos to NumPy arrays and back. Header-only, for C and C++: the code is in
/// memrt/numpy.
///
/// Include numpy/arrayobject.h first, with NPY_TARGET_VERSION at least NPY_1_22_API_VERSION, and
/// call import_array() before any function here. `api` is the result of memrt_import().
/// Threads: every function here needs the GIL.

#include <memrt/capsule.h>
#include <memrt/import.h>

#ifdef __cplusplus
extern "C" {
#endif

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
                                               const npy_intp *strides, npy_intp offset, int flags);

/// Return whether every element of a layout lies in a buffer of `size` bytes. `strides` in bytes;
/// NULL means contiguous.
static inline int memrt_layout_fits(size_t size, npy_intp itemsize, int nd, const npy_intp *dims,
                                    const npy_intp *strides, npy_intp offset);

/// Return whether a dtype holds Python references or pointers, which raw memory cannot hold because
/// NumPy would have to clear them.
static inline int memrt_descr_has_references(PyArray_Descr *descr);

/// Find the MemInfo behind an array, memoryview, capsule `memrt.meminfo` or memrt.MemInfo by
/// walking the base chain, and store a new reference in `*out`.
///
/// Ownership: the caller releases `*out`.
/// Failure:   returns -1 with an exception set: ValueError when memrt does not manage the memory,
///            MemoryError, or the exception of `__memrt_meminfo__()`. `*out` is unchanged then.
///            Returns 0 on success.
static inline int memrt_array_meminfo(const memrt_api_t *api, PyObject *object,
                                      memrt_meminfo_t **out);

/// Return the last object of the base chain of `object` as a new reference: an array that owns its
/// data, a capsule, an exporter of a buffer, or an array or view without a base. A cyclic chain
/// gives an arbitrary link. Failure: NULL with MemoryError set.
static inline PyObject *memrt_object_anchor(const memrt_api_t *api, PyObject *object);

/// Return whether `handler`, a NEP 49 capsule or NULL, is a memrt handler.
static inline int memrt_handler_check(const memrt_api_t *api, PyObject *handler);

/// Return whether the type of `object` has a method `__memrt_meminfo__()`, as memrt.MemInfo does.
/// Failure: -1 with MemoryError set.
static inline int memrt_exporter_check(PyObject *object);

#ifdef __cplusplus
}
#endif

#include <memrt/numpy/array_meminfo.h>
#include <memrt/numpy/meminfo_as_array.h>

#endif
