#ifndef MEMRT_CUDA_FUNCTIONS_H
#define MEMRT_CUDA_FUNCTIONS_H

#include "meminfo.h"

/// The table's calls that begin with `cuda_`, for memrt.cuda, which says what they are for.
/// Memories are numbers of memrt_memory_t, streams handles of the driver. While the driver works,
/// and may wait, the GIL is let go.

/// New buffer of a memory, on its account; device -1: that of the current context. NULL with an
/// exception.
memrt_meminfo_object_t *memrt__cuda_new(uint32_t memory, int32_t device, size_t size);

/// The handler of the policy that adopted buffers are on the account of, in the scope of this
/// context. New reference, or NULL with an exception.
PyObject *memrt__cuda_foreign_handler(void);

extern PyMethodDef memrt__cuda_methods[];

#endif
