#ifndef MEMRT_BINDINGS_CORE_DEVICE_SYNC_H
#define MEMRT_BINDINGS_CORE_DEVICE_SYNC_H

#include "core/meminfo_object.h"

#include <memrt/cuda.h>

/// Order the host and streams after pending device work on the memory of a MemInfo, and find the
/// device of the memory. CUDA memory may be inaccessible to the host, and work on it may be pending
/// in a stream. The GIL is released during driver calls.

/// Get the CUDA placement of a buffer. Returns 0 for ordinary memory.
int memrt__device_get_info(const memrt_meminfo_t *mi, memrt_cuda_info_t *out);

/// Wait until all work on a buffer is done. -1 with CudaError.
int memrt__device_wait(const memrt_cuda_info_t *info);

/// Make a stream wait for all work on a buffer. -1 with CudaError.
int memrt__device_order_stream(memrt_meminfo_t *mi, uintptr_t stream);

/// Make the bytes accessible to the host, after all pending work on them. -1 with BufferError for
/// device memory, or with CudaError.
int memrt__device_prepare_host(const memrt_meminfo_t *mi);

/// Bytes of a MemInfo, for reading or writing.
typedef struct memrt_bytes {
    void *data; ///< never NULL: a static address if the MemInfo has no data
    size_t size;
    int readonly;
} memrt_bytes_t;

/// Get the bytes of a MemInfo, after all pending device work on them. -1 with ReferenceError for a
/// cleared object, BufferError for device memory, or CudaError.
int memrt__device_get_host_bytes(memrt_meminfo_object_t *self, memrt_bytes_t *out);

/// Copy bytes of a CUDA buffer to the host, after all work on the buffer. -1 with CudaError.
int memrt__device_read_bytes(memrt_meminfo_t *mi, size_t offset, size_t size, void *out);

#endif
