#ifndef MEMRT_CUDA_DRIVER_H
#define MEMRT_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/status.h>

/// The CUDA driver: a library loaded at run time, as a table of the functions that memrt calls.
///
/// Types, names and numbers follow the driver's binary interface, which NVIDIA keeps stable: a
/// changed function gets a new name (`cuMemAlloc_v2`). The declarations are repeated here, so that
/// memrt builds without CUDA's headers.

typedef int memrt__cu_result_t;               ///< CUresult
typedef int memrt__cu_device_t;               ///< CUdevice: the ordinal
typedef unsigned long long memrt__cu_ptr_t;   ///< CUdeviceptr, since version 2 of the interface
typedef struct memrt__cu *memrt__cu_handle_t; ///< CUcontext, CUstream, CUevent

#define MEMRT__CU_SUCCESS 0
#define MEMRT__CU_ERROR_OUT_OF_MEMORY 2

#define MEMRT__CU_DEVICE_MEMORY_POOLS 115 ///< CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED
#define MEMRT__CU_POINTER_MEMORY_TYPE 2   ///< CU_POINTER_ATTRIBUTE_*, like the three values below
#define MEMRT__CU_POINTER_DEVICE_POINTER 3
#define MEMRT__CU_POINTER_IS_MANAGED 8
#define MEMRT__CU_POINTER_DEVICE_ORDINAL 9
#define MEMRT__CU_MEMORYTYPE_HOST 1
#define MEMRT__CU_MEM_ATTACH_GLOBAL 1u
#define MEMRT__CU_MEMHOSTALLOC_PORTABLE 1u ///< pinned for all contexts
#define MEMRT__CU_STREAM_NON_BLOCKING 1u   ///< does not wait for the legacy stream
#define MEMRT__CU_EVENT_DISABLE_TIMING 2u

/// List of all driver functions: whether memrt requires the function, field, symbol, parameters.
#define MEMRT__DRIVER_CALLS(CALL)                                                                  \
    CALL(true, init, cuInit, (unsigned flags))                                                     \
    CALL(true, error_name, cuGetErrorName, (memrt__cu_result_t error, const char **text))          \
    CALL(true, error_string, cuGetErrorString, (memrt__cu_result_t error, const char **text))      \
    CALL(true, device_count, cuDeviceGetCount, (int *count))                                       \
    CALL(true, device_get, cuDeviceGet, (memrt__cu_device_t * device, int ordinal))                \
    CALL(true, device_attribute, cuDeviceGetAttribute,                                             \
         (int *value, int attribute, memrt__cu_device_t device))                                   \
    CALL(true, context_retain, cuDevicePrimaryCtxRetain,                                           \
         (memrt__cu_handle_t * context, memrt__cu_device_t device))                                \
    CALL(true, context_state, cuDevicePrimaryCtxGetState,                                          \
         (memrt__cu_device_t device, unsigned *flags, int *active))                                \
    CALL(true, context_push, cuCtxPushCurrent_v2, (memrt__cu_handle_t context))                    \
    CALL(true, context_pop, cuCtxPopCurrent_v2, (memrt__cu_handle_t * context))                    \
    CALL(true, context_device, cuCtxGetDevice, (memrt__cu_device_t * device))                      \
    CALL(true, context_synchronize, cuCtxSynchronize, (void))                                      \
    CALL(true, mem_alloc, cuMemAlloc_v2, (memrt__cu_ptr_t * ptr, size_t size))                     \
    CALL(true, mem_free, cuMemFree_v2, (memrt__cu_ptr_t ptr))                                      \
    CALL(true, mem_alloc_managed, cuMemAllocManaged,                                               \
         (memrt__cu_ptr_t * ptr, size_t size, unsigned flags))                                     \
    CALL(true, mem_host_alloc, cuMemHostAlloc, (void **ptr, size_t size, unsigned flags))          \
    CALL(true, mem_free_host, cuMemFreeHost, (void *ptr))                                          \
    CALL(false, mem_alloc_async, cuMemAllocAsync,                                                  \
         (memrt__cu_ptr_t * ptr, size_t size, memrt__cu_handle_t stream))                          \
    CALL(false, mem_free_async, cuMemFreeAsync, (memrt__cu_ptr_t ptr, memrt__cu_handle_t stream))  \
    CALL(true, copy, cuMemcpy, (memrt__cu_ptr_t to, memrt__cu_ptr_t from, size_t size))            \
    CALL(true, copy_async, cuMemcpyAsync,                                                          \
         (memrt__cu_ptr_t to, memrt__cu_ptr_t from, size_t size, memrt__cu_handle_t stream))       \
    CALL(true, pointer_attribute, cuPointerGetAttribute,                                           \
         (void *value, int attribute, memrt__cu_ptr_t ptr))                                        \
    CALL(true, stream_create, cuStreamCreate, (memrt__cu_handle_t * stream, unsigned flags))       \
    CALL(true, stream_destroy, cuStreamDestroy_v2, (memrt__cu_handle_t stream))                    \
    CALL(true, stream_synchronize, cuStreamSynchronize, (memrt__cu_handle_t stream))               \
    CALL(true, stream_wait_event, cuStreamWaitEvent,                                               \
         (memrt__cu_handle_t stream, memrt__cu_handle_t event, unsigned flags))                    \
    CALL(true, event_create, cuEventCreate, (memrt__cu_handle_t * event, unsigned flags))          \
    CALL(true, event_record, cuEventRecord, (memrt__cu_handle_t event, memrt__cu_handle_t stream)) \
    CALL(true, event_destroy, cuEventDestroy_v2, (memrt__cu_handle_t event))

typedef struct memrt__driver {
#define MEMRT__DRIVER_FIELD(required, field, symbol, parameters)                                   \
    memrt__cu_result_t(*field) parameters; ///< see MEMRT__DRIVER_CALLS
    MEMRT__DRIVER_CALLS(MEMRT__DRIVER_FIELD)
#undef MEMRT__DRIVER_FIELD
} memrt__driver_t;

/// Return the driver. The first call that finds a driver loads and initializes the library, which
/// stays loaded. Returns NULL without a working driver, and `why` (unless NULL) gets a sentence of
/// at most `length` bytes.
const memrt__driver_t *memrt__driver(char *why, size_t length);

/// Return the driver if it was loaded before. Returns NULL in a child forked since.
const memrt__driver_t *memrt__driver_loaded(void);

/// Turn the result of a driver call into a status. `offset` is the offset of the call's field.
/// Records a failed call for memrt__driver_error() on this thread. Returns MEMRT_ENOMEM for
/// CUDA_ERROR_OUT_OF_MEMORY and MEMRT_EDEVICE for any other error.
memrt_status_t memrt__driver_judge(size_t offset, memrt__cu_result_t result) MEMRT_MUST_CHECK;

/// Call a driver function by its field, and return a status.
#define MEMRT__CU(driver, field, ...)                                                              \
    memrt__driver_judge(offsetof(memrt__driver_t, field), (driver)->field(__VA_ARGS__))

/// See memrt_api_t.cuda_error.
size_t memrt__driver_error(char *text, size_t length);

/// Disable the driver in a forked child, if the parent had loaded it: CUDA does not work after
/// fork.
void memrt__driver_forked(void);

#endif
