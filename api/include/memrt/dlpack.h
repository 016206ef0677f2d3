#ifndef MEMRT_DLPACK_H
#define MEMRT_DLPACK_H

/// Exchange of MemInfos as DLPack tensors, with or without Python: types for the slots
/// `dlpack_export` to `dlpack_new`.
///
/// DLPack's own header is memrt/dlpack/dlpack.h, unmodified.
/// Ownership: the producer hands a pointer to a DLManagedTensorVersioned (before version 1.0: a
///            DLManagedTensor) to the consumer. The consumer calls `deleter` once, when the memory
///            is not needed any more.
/// Threads:   the consumer may call `deleter` on any thread.

#include <memrt/dlpack/dlpack.h>
#include <memrt/external.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Maximum number of dimensions of a tensor that memrt exports or imports.
#define MEMRT_DLPACK_NDIM_MAX 64

/// Name of the reference by which an exported tensor holds its MemInfo, of kind
/// MEMRT_HOLDER_EXPORT.
#define MEMRT_DLPACK_HOLDER "dlpack"

/// Layout of elements in the data of a MemInfo: the fields of DLTensor, relative to the first byte
/// of the data. Set `struct_size` to sizeof(memrt_dlpack_view_t), also in a view that memrt fills
/// in.
///
/// Elements are integers of 8 to 64 bits, floats of 16 to 64, bfloat16, float8, complex of 64 and
/// 128, and bool of 8. Each element has one lane and the byte order of the machine.
typedef struct memrt_dlpack_view {
    size_t struct_size;     ///< sizeof(memrt_dlpack_view_t)
    DLDataType dtype;       ///< type of each element
    DLDevice device;        ///< device of the memory; type 0: the device that memrt knows
    int32_t ndim;           ///< number of dimensions, 0 to MEMRT_DLPACK_NDIM_MAX
    uint64_t offset;        ///< bytes from the first byte of the data to the first element
    uint64_t flags;         ///< DLPACK_FLAG_BITMASK_READ_ONLY and DLPACK_FLAG_BITMASK_IS_COPIED
    const int64_t *shape;   ///< `ndim` extents of 0 or more; NULL for no dimensions
    const int64_t *strides; ///< `ndim` steps in elements; NULL: compact, the last dimension fastest
} memrt_dlpack_view_t;

/// Write the `ndim` strides of a view, in elements. For a view without strides, the strides of the
/// compact layout are written. The view must be one that memrt has accepted.
static inline void memrt_dlpack_strides(const memrt_dlpack_view_t *view, int64_t *strides)
{
    int64_t step = 1;
    for (int32_t i = view->ndim - 1; i >= 0; i--) {
        strides[i] = view->strides != NULL ? view->strides[i] : step;
        step *= view->shape[i] > 0 ? view->shape[i] : 1;
    }
}

#ifdef __cplusplus
}
#endif

#endif
