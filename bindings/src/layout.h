#ifndef MEMRT_LAYOUT_H
#define MEMRT_LAYOUT_H

#include "meminfo.h"
#include "ndarray.h"

#include <memrt/dlpack.h>

/// How NumPy and DLPack say which elements lie where.

/// Room for the shape and the strides of any view.
typedef int64_t memrt_numbers_t[2 * MEMRT_DLPACK_NDIM_MAX];

/// What an array says, whose memory `mi` is; shape and strides are put into `numbers`. -1 with
/// BufferError for a type, byte order or strides that DLPack has no words for.
int memrt__layout_of_array(PyArrayObject *array, const memrt_meminfo_t *mi,
                           memrt_dlpack_view_t *out, memrt_numbers_t numbers);

/// New array over the memory of `base`, which becomes its base; read-only if the view says so. All
/// work on the memory is done then. NULL with BufferError for a type that NumPy has not and for
/// memory of a device, with CudaError and MemoryError.
PyObject *memrt__layout_as_array(memrt_meminfo_object_t *base, const memrt_dlpack_view_t *view);

/// The dtype of the elements of a view; NULL with BufferError for a type that NumPy has not. New
/// reference.
PyArray_Descr *memrt__layout_descr(const memrt_dlpack_view_t *view);

/// Bytes from the lowest to the highest one of any element of a view that memrt has found sound;
/// `before`: those before the first element.
size_t memrt__layout_reach(const memrt_dlpack_view_t *view, size_t *before);

/// Bytes of all elements of a view that memrt has found sound.
size_t memrt__layout_nbytes(const memrt_dlpack_view_t *view);

#endif
