#ifndef MEMRT_DEVICE_CONTEXT_H
#define MEMRT_DEVICE_CONTEXT_H

#include <stdint.h>

#include <memrt/cuda.h>

#include "runtime/device/driver.h"

/// Devices that memrt can work on: ordinals below.
#define MEMRT__DEVICES_MAX 64

/// A device whose primary context the calling thread works in.
typedef struct memrt__context {
    const memrt__driver_t *driver;
    int32_t device; ///< ordinal
} memrt__context_t;

/// Work on a device, or MEMRT_CUDA_DEVICE_CURRENT, until memrt__context_leave(). Its primary
/// context is kept for the life of the process from the first time on, since buffers may die at any
/// time. MEMRT_ENOTSUP: no driver; MEMRT_EINVAL: no ordinal; MEMRT_ENOMEM, MEMRT_EDEVICE.
memrt_status_t memrt__context_enter(int32_t device, memrt__context_t *out) MEMRT_MUST_CHECK;

/// The context that was current before is so again.
void memrt__context_leave(const memrt__context_t *context);

/// Whether buffers are made and freed in the order of streams on the device.
bool memrt__context_has_pools(const memrt__context_t *context);

#endif
