#ifndef MEMRT_CUDA_BUFFER_H
#define MEMRT_CUDA_BUFFER_H

#include <memrt/cuda.h>
#include <memrt/status.h>

/// CUDA buffers as MemInfos. The rest of memrt sees a MemInfo over foreign data and touches no byte
/// of the data. The destructor frees the memory in the order of the buffer's stream.
///
/// The functions implement the members of memrt_api_t that begin with `cuda_`; see their contracts
/// there.

memrt_status_t memrt__buffer_new(size_t size, const memrt_cuda_options_t *options,
                                 memrt_meminfo_t **out) MEMRT_MUST_CHECK;
memrt_status_t memrt__buffer_adopt(uintptr_t address, size_t size,
                                   const memrt_cuda_options_t *options,
                                   memrt_meminfo_t **out) MEMRT_MUST_CHECK;
memrt_status_t memrt__buffer_info(const memrt_meminfo_t *mi,
                                  memrt_cuda_info_t *out) MEMRT_MUST_CHECK;
memrt_status_t memrt__buffer_used(memrt_meminfo_t *mi, uintptr_t stream) MEMRT_MUST_CHECK;
memrt_status_t memrt__buffer_wait(memrt_meminfo_t *mi, uintptr_t stream) MEMRT_MUST_CHECK;
memrt_status_t memrt__buffer_read(memrt_meminfo_t *mi, size_t offset, void *out, size_t size,
                                  uintptr_t stream) MEMRT_MUST_CHECK;
memrt_status_t memrt__buffer_write(memrt_meminfo_t *mi, size_t offset, const void *data,
                                   size_t size, uintptr_t stream) MEMRT_MUST_CHECK;

#endif
