#ifndef MEMRT_CUDA_CONTEXT_H
#define MEMRT_CUDA_CONTEXT_H

#include <stdint.h>

#include <memrt/cuda.h>

#include "runtime/cuda/driver.h"

/// Number of devices that memrt supports: ordinals must be below.
#define MEMRT__DEVICES_MAX 64

/// A device whose primary context the calling thread works in.
typedef struct memrt__context {
    const memrt__driver_t *driver;
    int32_t device; ///< ordinal
} memrt__context_t;

/// Make the primary context of a device current, until memrt__context_leave(). `device` is an
/// ordinal or MEMRT_CUDA_DEVICE_CURRENT. The primary context is retained at the first use and kept
/// for the life of the process, because buffers may be freed at any time.
///
/// Failure: MEMRT_ENOTSUP without a driver, MEMRT_EINVAL for a bad ordinal, MEMRT_ENOMEM,
/// MEMRT_EDEVICE.
memrt_status_t memrt__context_enter(int32_t device, memrt__context_t *out) MEMRT_MUST_CHECK;

/// Make the previous context current again.
void memrt__context_leave(const memrt__context_t *context);

/// Wait for all work of the primary contexts of all devices. Returns false if a device reports an
/// error.
bool memrt__context_wait_for_all(const memrt__driver_t *driver) MEMRT_MUST_CHECK;

/// Return whether the device can allocate and free memory in the order of streams.
bool memrt__context_has_pools(const memrt__context_t *context);

#endif
