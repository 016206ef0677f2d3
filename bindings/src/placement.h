#ifndef MEMRT_PLACEMENT_H
#define MEMRT_PLACEMENT_H

#include "meminfo.h"

#include <memrt/cuda.h>

/// Where the memory of a MemInfo is, for whoever hands it out: CUDA's may be out of the host's
/// reach, and work on it may wait in a stream. While the driver works, the GIL is let go.

/// What CUDA knows of a buffer; 0: it is in ordinary memory.
int memrt__placement(const memrt_meminfo_t *mi, memrt_cuda_info_t *out);

/// Wait until all work on a buffer is done. -1 with CudaError.
int memrt__placement_settle(const memrt_cuda_info_t *info);

/// Have a stream wait for all work on a buffer. -1 with CudaError.
int memrt__placement_lead(memrt_meminfo_t *mi, uintptr_t stream);

/// Let the host read and write the bytes: all work on them is done then. -1 with BufferError for a
/// device's memory, and with CudaError.
int memrt__placement_for_host(const memrt_meminfo_t *mi);

/// New memory of the same kind and device with a copy of some bytes, by CUDA. NULL with an
/// exception.
memrt_meminfo_object_t *memrt__placement_copy(memrt_meminfo_t *mi, size_t offset, size_t size);

/// Copy some bytes of a buffer to the host, after all work on them. -1 with CudaError.
int memrt__placement_read(memrt_meminfo_t *mi, size_t offset, size_t size, void *out);

#endif
