#ifndef MEMRT_EXCHANGE_H
#define MEMRT_EXCHANGE_H

/// Exchange of MemInfos with other libraries: functions for DLPack tensors and Arrow arrays.
///
/// To call the functions, also include memrt/dlpack.h or memrt/arrow.h, which define the structs.
/// `*why` (unless `why` is NULL) is a static sentence about the tensor or array when a function
/// returns MEMRT_EINVAL, MEMRT_ENOTSUP or, for a tensor, MEMRT_EDEVICE.

#include <memrt/meminfo/create.h>
#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Declared in memrt/dlpack.h and in DLPack's own header, for programs that exchange tensors. */
struct memrt_dlpack_view;
struct DLManagedTensor;
struct DLManagedTensorVersioned;
/* Declared in memrt/arrow.h, for programs that exchange Arrow arrays. */
struct memrt_arrow_view;
struct ArrowArray;
struct ArrowSchema;

/* --- DLPack. --- */

/// Export `mi` to another library: create a tensor of DLPack version 1.3 over the data of `mi`,
/// with the layout in `view`, which is copied.
///
/// The tensor is marked read-only if `mi` or the view is read-only. A tensor without elements
/// has no data. Until the other library calls the deleter, `holders` lists the export under
/// MEMRT_DLPACK_HOLDER. For CUDA memory, the caller must make the library's work wait for
/// pending work, for example with cuda_wait.
/// Ownership: the tensor holds one reference, which its deleter releases.
/// Threads:   the deleter may be called on any thread, without a GIL.
/// Failure:   MEMRT_EINVAL when struct_size is not set, and for flags that a view cannot have;
///            MEMRT_EINVAL for a shape that is impossible in memory, and for elements outside
///            of the data; MEMRT_ENOTSUP for an element type that is not exchanged, and for a
///            device that does not hold the memory; MEMRT_ENOMEM.
typedef memrt_status_t (*memrt_dlpack_export_fn)(memrt_meminfo_t *mi,
                                                 const struct memrt_dlpack_view *view,
                                                 struct DLManagedTensorVersioned **out,
                                                 const char **why);

/// Export `mi` as dlpack_export does, for a library that knows only tensors from before version
/// 1.0. Such tensors cannot be marked as read-only, nor as copies.
/// Failure: as dlpack_export, and MEMRT_ENOTSUP for read-only memory.
typedef memrt_status_t (*memrt_dlpack_export_unversioned_fn)(memrt_meminfo_t *mi,
                                                             const struct memrt_dlpack_view *view,
                                                             struct DLManagedTensor **out,
                                                             const char **why);

/// Create a MemInfo over the memory of a tensor from another library, as meminfo_adopt does,
/// count 1.
///
/// The data runs from the lowest to the highest byte of any element. `view` receives the layout
/// of the elements; its shape and strides are borrowed from the tensor. The MemInfo is
/// read-only if the tensor is. Unknown flags of the tensor are ignored. Memory of a CUDA device
/// becomes a MemInfo as by cuda_adopt, with the legacy stream as the order of its work.
/// `options`: as for meminfo_adopt. A `dtor` runs in place of the deleter, and has to make sure
///            that the deleter is called.
/// Ownership: on MEMRT_OK the MemInfo owns the tensor, and calls the deleter (if any) at the
///            end. On failure the caller still owns the tensor, and may always call the
///            deleter.
/// Threads:   the deleter runs on the thread that releases the last reference.
/// Failure:   MEMRT_EINVAL when a struct_size is not set, and for options that do not apply;
///            MEMRT_EINVAL for a shape, strides or address that is impossible in memory, and
///            for dimensions without strides from version 1.2 on. MEMRT_ENOTSUP for a major
///            version other than 1, where only the deleter of the tensor may be used.
///            MEMRT_ENOTSUP for a device whose memory the host cannot read, except CUDA with a
///            driver, and for an element type that is not exchanged. MEMRT_EDEVICE where the
///            driver does not know the memory; MEMRT_ENOMEM.
typedef memrt_status_t (*memrt_dlpack_adopt_fn)(struct DLManagedTensorVersioned *tensor,
                                                const memrt_new_options_t *options,
                                                struct memrt_dlpack_view *view,
                                                memrt_meminfo_t **out, const char **why);

/// Create a MemInfo as dlpack_adopt does, for a tensor from before version 1.0. The MemInfo and
/// the view are read-only, because such a tensor does not state whether its memory may be
/// written.
typedef memrt_status_t (*memrt_dlpack_adopt_unversioned_fn)(struct DLManagedTensor *tensor,
                                                            const memrt_new_options_t *options,
                                                            struct memrt_dlpack_view *view,
                                                            memrt_meminfo_t **out,
                                                            const char **why);

/// Allocate memory for a tensor like `view`, and create the tensor, for libraries that leave
/// allocation to another library.
///
/// The view has no strides, because the elements are compact, and no offset. Its device is the
/// CPU or a CUDA device; CUDA memory is allocated as by cuda_new.
/// `options`: as for meminfo_new; with CUDA, `alignment`, `zeroed` and `external` must not be
///            set.
/// Ownership: the tensor, as dlpack_export makes a tensor, holds the only reference.
/// Failure:   as meminfo_new, cuda_new and dlpack_export; MEMRT_EINVAL for strides or an
///            offset, and for the option `readonly`.
typedef memrt_status_t (*memrt_dlpack_new_fn)(const struct memrt_dlpack_view *view,
                                              const memrt_new_options_t *options,
                                              struct DLManagedTensorVersioned **out,
                                              const char **why);

/* --- Arrow. --- */

/// Export `mi` to another library: fill in an array over the data of `mi`, with the layout in
/// `view`, and the schema of its elements. `schema` or `array` may be NULL if the caller needs
/// only one of the two.
///
/// Until the array is released, `holders` lists the export under MEMRT_ARROW_HOLDER. Memory
/// that is read as an Arrow array must not be written.
/// Ownership: the caller owns the structs that were filled in, and releases each by its
///            `release`. The array holds a reference to `mi` and a reference to the MemInfo of
///            the bitmap; texts are copied.
/// Threads:   `release` may be called on any thread, without a GIL.
/// Failure:   MEMRT_EINVAL when struct_size is not set, and for flags that a view cannot have;
///            MEMRT_EINVAL for elements or a bitmap outside of the data of their MemInfo, or
///            not in the same memory; MEMRT_ENOTSUP for a format that is not exchanged, and for
///            memory of a device without MEMRT_ARROW_DEVICE; MEMRT_ENOMEM. On failure nothing
///            is filled in.
typedef memrt_status_t (*memrt_arrow_export_fn)(memrt_meminfo_t *mi,
                                                const struct memrt_arrow_view *view,
                                                struct ArrowSchema *schema,
                                                struct ArrowArray *array, const char **why);

/// Create a MemInfo over the elements of an array from another library, as meminfo_adopt does,
/// count 1. The MemInfo is read-only, as Arrow arrays are.
///
/// `view` receives the layout of the elements, with a counted number of nulls. Its format and
/// name are borrowed from the schema, which stays the caller's, and its bitmap is borrowed from
/// the array. With a `dtor` in the options, the array is not moved: the `dtor` runs in place of
/// `release`, and has to make sure that `release` is called.
/// Ownership: on MEMRT_OK the array was moved: its `release` is NULL, and the MemInfo calls the
///            moved `release` at the end. On failure the caller owns the array as before.
/// Threads:   `release` is called on the thread that releases the last reference.
/// Failure:   MEMRT_EINVAL when a struct_size is not set, and for options that do not apply;
///            MEMRT_EINVAL for a schema or array that was released, is inconsistent, or has
///            numbers that are impossible in memory; MEMRT_ENOTSUP for a format that is not
///            exchanged, and for children or a dictionary; MEMRT_ENOMEM.
typedef memrt_status_t (*memrt_arrow_adopt_fn)(const struct ArrowSchema *schema,
                                               struct ArrowArray *array,
                                               const memrt_new_options_t *options,
                                               struct memrt_arrow_view *view, memrt_meminfo_t **out,
                                               const char **why);

#ifdef __cplusplus
}
#endif

#endif
