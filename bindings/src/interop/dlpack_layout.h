#ifndef MEMRT_BINDINGS_INTEROP_DLPACK_LAYOUT_H
#define MEMRT_BINDINGS_INTEROP_DLPACK_LAYOUT_H

#include "core/meminfo_object.h"
#include "support/ndarray.h"

#include <memrt/dlpack.h>

/// Convert layouts of elements between NumPy and DLPack.

/// Storage for the shape and strides of any view.
typedef int64_t memrt_numbers_t[2 * MEMRT_DLPACK_NDIM_MAX];

/// Describe an array over the memory of `mi` as a DLPack view. Shape and strides are stored in
/// `numbers`. -1 with BufferError for a dtype, byte order or strides that DLPack cannot represent.
int memrt__dlpack_layout_of_array(PyArrayObject *array, const memrt_meminfo_t *mi,
                                  memrt_dlpack_view_t *out, memrt_numbers_t numbers);

/// Create an array over the memory of `base`, which becomes the array's base. The array is
/// read-only if the view is. Waits for all pending device work on the memory.
/// Failure: NULL with BufferError for a type that NumPy lacks and for device memory, with
/// CudaError, or with MemoryError.
PyObject *memrt__dlpack_layout_as_array(memrt_meminfo_object_t *base,
                                        const memrt_dlpack_view_t *view);

/// Return the dtype of the elements of a view. New reference, or NULL with BufferError for a type
/// that NumPy lacks.
PyArray_Descr *memrt__dlpack_layout_descr(const memrt_dlpack_view_t *view);

/// Return the bytes from the lowest to the highest byte of any element, and in `before` the bytes
/// below the first element. memrt must have validated the view.
size_t memrt__dlpack_layout_reach(const memrt_dlpack_view_t *view, size_t *before);

/// Return the bytes of all elements of a view that memrt has validated.
size_t memrt__dlpack_layout_nbytes(const memrt_dlpack_view_t *view);

#endif
