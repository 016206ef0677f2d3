#ifndef MEMRT_BINDINGS_INTEROP_DLPACK_REQUEST_H
#define MEMRT_BINDINGS_INTEROP_DLPACK_REQUEST_H

#include "support/binding.h"

#include <memrt/cuda.h>
#include <memrt/dlpack.h>

/// Read the request of a DLPack consumer: the arguments of `__dlpack__`.

/// Parsed arguments of `__dlpack__`.
typedef struct memrt_dlpack_request {
    int versioned;
    uint32_t minor; ///< newest minor version of major version 1 that the consumer supports
    DLDevice device;
    uintptr_t stream; ///< stream of the consumer, or one of the constants below
    int must_copy;
} memrt_dlpack_request_t;

#define MEMRT_DLPACK_NO_STREAM MEMRT_CUDA_STREAM_NONE ///< the consumer named no stream
#define MEMRT_DLPACK_NO_ORDER UINTPTR_MAX             ///< the consumer orders the work itself

/// Read the arguments of `__dlpack__` for memory on `memory_device`, as METH_FASTCALL |
/// METH_KEYWORDS passes them: stream, max_version, dl_device, copy.
/// Failure: -1 with BufferError for an export that cannot be made as requested, ValueError for an
/// argument of a wrong kind, or TypeError for an unknown argument.
int memrt__dlpack_request_read(const memrt_meminfo_t *mi, DLDevice memory_device,
                               PyObject *const *args, Py_ssize_t count, PyObject *names,
                               memrt_dlpack_request_t *out);

#endif
