#ifndef MEMRT_INTAKE_H
#define MEMRT_INTAKE_H

#include "meminfo.h"

#include <memrt/dlpack.h>

/// Taking what other libraries hand out by DLPack: from_dlpack(), and tensors as C code has them.

/// A MemInfo object over the memory of a tensor. Steals the tensor, also on failure: its deleter is
/// called once, where the GIL is held, as owners are run. `view` is filled in; its shape and
/// strides are valid while the MemInfo is. NULL with an exception.
memrt_meminfo_object_t *memrt__intake_adopt(DLManagedTensorVersioned *tensor,
                                            memrt_policy_t *policy, memrt_dlpack_view_t *view);

/// The tensor that keeps the memory of a MemInfo alive, or NULL.
const DLTensor *memrt__tensor_behind(const memrt_meminfo_t *mi);

/// Make what is used again in each call; once, at import. -1 with an exception.
int memrt__intake_setup(void);

extern PyMethodDef memrt__intake_methods[];

#endif
