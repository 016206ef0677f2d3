#include "runtime/cuda/context.h"

#include "runtime/base/atomics.h"
#include "runtime/base/check.h"

static size_t contexts[MEMRT__DEVICES_MAX]; ///< atomic; a memrt__cu_handle_t, 0: not retained yet

/// Return the device of the thread's current context, or device 0 without a current context.
static int32_t get_current_device(const memrt__driver_t *driver)
{
    memrt__cu_device_t device;
    return driver->context_device(&device) == MEMRT__CU_SUCCESS ? device : 0;
}

/// Retain the primary context of a device. Two threads may both retain the context. An extra
/// reference is harmless, because the context is never released.
static memrt_status_t retain_context(const memrt__driver_t *driver, int32_t ordinal)
{
    memrt__cu_device_t device = 0;
    memrt__cu_handle_t context = NULL;
    memrt_status_t status = MEMRT__CU(driver, device_get, &device, ordinal);
    if (status == MEMRT_OK) {
        status = MEMRT__CU(driver, context_retain, &context, device);
    }
    if (status == MEMRT_OK) {
        MEMRT__ASSERT(context != NULL);
        memrt__store_release(&contexts[ordinal], (size_t)context);
    }
    return status;
}

memrt_status_t memrt__context_enter(int32_t device, memrt__context_t *out)
{
    const memrt__driver_t *driver = memrt__driver(NULL, 0);
    if (driver == NULL) {
        return MEMRT_ENOTSUP;
    }
    int32_t ordinal = device == MEMRT_CUDA_DEVICE_CURRENT ? get_current_device(driver) : device;
    if (ordinal < 0 || ordinal >= MEMRT__DEVICES_MAX) {
        return MEMRT_EINVAL;
    }
    if (memrt__load_acquire(&contexts[ordinal]) == 0) {
        memrt_status_t status = retain_context(driver, ordinal);
        if (status != MEMRT_OK) {
            return status;
        }
    }
    memrt_status_t status = MEMRT__CU(driver, context_push,
                                      (memrt__cu_handle_t)memrt__load_acquire(&contexts[ordinal]));
    if (status == MEMRT_OK) {
        *out = (memrt__context_t){driver, ordinal};
    }
    return status;
}

void memrt__context_leave(const memrt__context_t *context)
{
    memrt__cu_handle_t left;
    MEMRT__ASSERT(context->device >= 0 && context->device < MEMRT__DEVICES_MAX);
    (void)context->driver->context_pop(&left);
}

/// Wait for all work of a device, unless no library of the process uses the device.
static bool wait_for_device(const memrt__driver_t *driver, int32_t ordinal)
{
    memrt__context_t context;
    memrt__cu_device_t device = 0;
    unsigned flags = 0;
    int active = 0;
    if (driver->device_get(&device, ordinal) != MEMRT__CU_SUCCESS ||
        driver->context_state(device, &flags, &active) != MEMRT__CU_SUCCESS) {
        return false;
    }
    if (active == 0) {
        return true;
    }
    if (memrt__context_enter(ordinal, &context) != MEMRT_OK) {
        return false;
    }
    bool done = driver->context_synchronize() == MEMRT__CU_SUCCESS;
    memrt__context_leave(&context);
    return done;
}

bool memrt__context_wait_for_all(const memrt__driver_t *driver)
{
    int devices = 0;
    bool done =
        driver->device_count(&devices) == MEMRT__CU_SUCCESS && devices <= MEMRT__DEVICES_MAX;
    for (int32_t ordinal = 0; done && ordinal < devices; ordinal++) {
        done = wait_for_device(driver, ordinal);
    }
    return done;
}

bool memrt__context_has_pools(const memrt__context_t *context)
{
    const memrt__driver_t *driver = context->driver;
    int has = 0;
    if (driver->mem_alloc_async == NULL || driver->mem_free_async == NULL) {
        return false;
    }
    return driver->device_attribute(&has, MEMRT__CU_DEVICE_MEMORY_POOLS, context->device) ==
               MEMRT__CU_SUCCESS &&
           has != 0;
}
