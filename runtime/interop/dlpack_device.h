#ifndef MEMRT_INTEROP_DLPACK_DEVICE_H
#define MEMRT_INTEROP_DLPACK_DEVICE_H

#include <stdbool.h>

#include <memrt/cuda.h>
#include <memrt/dlpack.h>

/// Devices of DLPack tensors, and the CUDA memory of the devices.

/// Reason for a refusal: the device or its memory does not exist.
extern const char memrt__dlpack_no_device[];

/// Return whether the host can read the memory of a device.
bool memrt__dlpack_is_host(DLDevice device);

/// Choose the device for a tensor over `mi`: the device `requested` in the view, or the MemInfo's
/// device if `requested` names none. Host-readable memory may have any host-readable device type.
/// Returns false if the memory is not on the device `requested`.
bool memrt__dlpack_choose_device(const memrt_meminfo_t *mi, DLDevice requested, DLDevice *out);

/// Return the kind of CUDA memory of a device, or MEMRT_MEMORY_HOST for other devices.
memrt_memory_t memrt__dlpack_memory_of(DLDevice device);

/// Return whether CUDA memory supports the options: no alignment, no zeroing, no external
/// allocator.
bool memrt__dlpack_fits_cuda(const memrt_new_options_t *options);

/// Return CUDA options with the settings of `options`, for memory of `device`.
memrt_cuda_options_t memrt__dlpack_cuda_options(const memrt_new_options_t *options,
                                                DLDevice device);

#endif
