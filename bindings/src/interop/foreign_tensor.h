#ifndef MEMRT_BINDINGS_INTEROP_FOREIGN_TENSOR_H
#define MEMRT_BINDINGS_INTEROP_FOREIGN_TENSOR_H

#include "core/meminfo_object.h"

#include <memrt/dlpack.h>

/// DLPack tensors of other libraries, and MemInfos over their memory. Each tensor is owned by
/// exactly one party at a time. memrt calls the deleter of a tensor once.

/// A tensor, versioned or unversioned.
typedef struct memrt_foreign_tensor {
    void *tensor; ///< a DLManagedTensorVersioned or a DLManagedTensor
    int versioned;
} memrt_foreign_tensor_t;

/// Return whether the memory of a tensor is device memory, which the host cannot read. For another
/// major version of DLPack the answer is no, since only the version may be read then.
int memrt__foreign_tensor_is_on_device(memrt_foreign_tensor_t foreign);

/// Create a MemInfo object over the memory of a tensor, and fill in `view`. Shape and strides of
/// `view` are valid as long as the MemInfo. `keep` lives as long as the memory; NULL: no object.
/// Ownership: steals the tensor, also on failure. The deleter is called once, with the GIL held,
/// when the owner runs.
/// Failure: NULL with an exception.
memrt_meminfo_object_t *memrt__foreign_tensor_adopt(memrt_foreign_tensor_t foreign, PyObject *keep,
                                                    memrt_policy_t *policy,
                                                    memrt_dlpack_view_t *view);

/// Call the deleter of an unusable tensor. A pending exception stays pending.
void memrt__foreign_tensor_delete(memrt_foreign_tensor_t foreign);

/// Return the tensor that keeps the memory of a MemInfo alive, or NULL.
const DLTensor *memrt__foreign_tensor_behind(const memrt_meminfo_t *mi);

#endif
