#ifndef MEMRT_DLPACK_H
#define MEMRT_DLPACK_H

/// MemInfos as DLPack tensors and back, for programs without Python too: the slots `dlpack_export`
/// to `dlpack_adopt_unversioned` of the table, and what they are told.
///
/// DLPack's own header stands beside this one, unmodified. A pointer to a DLManagedTensorVersioned
/// (or to a DLManagedTensor, as before version 1.0) is handed from one library to another, which
/// calls its `deleter` once, on any thread, when it does not need the memory any more.

#include <memrt/dlpack/dlpack.h>
#include <memrt/external.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Most dimensions of a tensor that memrt gives or takes.
#define MEMRT_DLPACK_NDIM_MAX 64

/// The name under which a tensor that was exported holds its MemInfo, as MEMRT_HOLDER_EXPORT.
#define MEMRT_DLPACK_HOLDER "dlpack"

/// How elements lie over the data of a MemInfo: what DLTensor says, seen from the first byte of the
/// data. Set `struct_size` to sizeof(memrt_dlpack_view_t), also of one that is to be filled in.
///
/// Elements are integers of 8 to 64 bits, floats of 16 to 64, bfloat16, float8, complex of 64 and
/// 128, and bool of 8, each with one lane, in the byte order of the machine.
typedef struct memrt_dlpack_view {
    size_t struct_size;     ///< sizeof(memrt_dlpack_view_t)
    DLDataType dtype;       ///< of each element
    DLDevice device;        ///< where the memory is; type 0: as memrt knows it
    int32_t ndim;           ///< dimensions, 0 to MEMRT_DLPACK_NDIM_MAX
    uint64_t offset;        ///< bytes from the first byte of the data to the first element
    uint64_t flags;         ///< DLPACK_FLAG_BITMASK_READ_ONLY and _IS_COPIED
    const int64_t *shape;   ///< `ndim` extents of 0 or more; NULL for no dimensions
    const int64_t *strides; ///< `ndim` steps in elements; NULL: compact, the last dimension fastest
} memrt_dlpack_view_t;

/// Write the strides that a view has, in elements, also one that names none because its elements
/// lie compact: `ndim` of them. The view is one that memrt has found sound.
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
