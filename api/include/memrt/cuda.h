#ifndef MEMRT_CUDA_H
#define MEMRT_CUDA_H

/// Types of CUDA memory, for the slots of memrt_api_t that begin with `cuda_`.
///
/// The first call of such a slot loads the driver from the file that MEMRT_CUDA_DRIVER names. memrt
/// works in the primary context of each device and keeps the context for the life of the process.
/// The current context of the calling thread is left unchanged.
///
/// A process made by fork can use neither CUDA nor inherited buffers. In such a process, the
/// release of an inherited buffer does not call the driver.

#include <stddef.h>
#include <stdint.h>

#include <memrt/meminfo.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Kind of memory of a buffer: where the bytes are, and which processors can use the address.
typedef enum memrt_memory {
    MEMRT_MEMORY_HOST = 0,    ///< ordinary memory
    MEMRT_MEMORY_DEVICE = 1,  ///< device memory; the host must not access the bytes
    MEMRT_MEMORY_MANAGED = 2, ///< memory that moves between host and devices on use
    MEMRT_MEMORY_PINNED = 3,  ///< page-locked host memory that devices can access as well
} memrt_memory_t;

/// Bit in memrt_meminfo_t.flags: the data is device memory, which the host must not access.
#define MEMRT_FLAG_DEVICE (1u << 17)

/// Predefined stream handles of the driver. 0 stands for work that is not ordered by a stream.
#define MEMRT_CUDA_STREAM_NONE ((uintptr_t)0)
#define MEMRT_CUDA_STREAM_LEGACY ((uintptr_t)1)     ///< CU_STREAM_LEGACY
#define MEMRT_CUDA_STREAM_PER_THREAD ((uintptr_t)2) ///< CU_STREAM_PER_THREAD

/// Device of the calling thread's current context; the first device if no context is current.
#define MEMRT_CUDA_DEVICE_CURRENT (-1)

/// Settings of a new buffer. Set `struct_size` and `device`; zero in any other member selects the
/// default.
typedef struct memrt_cuda_options {
    size_t struct_size; ///< sizeof(memrt_cuda_options_t)
    uint32_t memory;    ///< a memrt_memory_t; 0: MEMRT_MEMORY_DEVICE. Not for cuda_adopt
    int32_t device;     ///< ordinal, or MEMRT_CUDA_DEVICE_CURRENT. Not for cuda_adopt
    uintptr_t stream;   ///< stream of the first use, whose order the free follows. The stream must
                        ///< live as long as the buffer
    int32_t readonly;   ///< non-zero: read-only, for memrt_api_t.readonly and bindings
    uint32_t reserved;  ///< 0
    memrt_dtor_fn dtor; ///< called after the memory went back to the driver; NULL: none
    void *dtor_info;    ///< third argument of `dtor`
    const char *name;   ///< copied, at most MEMRT_NAME_MAX bytes; NULL: no name
    struct memrt_policy *policy; ///< borrowed; policy of the account; NULL: as cuda_policy
} memrt_cuda_options_t;

/// CUDA properties of a buffer.
typedef struct memrt_cuda_info {
    size_t struct_size; ///< set by the caller to sizeof(memrt_cuda_info_t)
    uint32_t memory;    ///< a memrt_memory_t
    int32_t device;     ///< ordinal; -1: no device, as for NumPy arrays in pinned memory
    uintptr_t stream;   ///< stream that orders all work on the buffer; 0: no work is pending
    int32_t adopted;    ///< non-zero: the memory was adopted, not allocated by memrt
    uint32_t reserved;  ///< 0
} memrt_cuda_info_t;

/// Account of the buffers that memrt allocated in one memory, for all devices.
///
/// Each counter is exact. Requests and frees of several threads at the same time may make `peak`
/// differ from the maximum of `live` by the bytes of these requests and frees.
typedef struct memrt_cuda_stats {
    size_t struct_size; ///< set by the caller to sizeof(memrt_cuda_stats_t)
    uint64_t live;      ///< bytes in use now
    uint64_t peak;      ///< maximum bytes in use at once since the start
    uint64_t limit;     ///< maximum bytes allowed in use at once; UINT64_MAX: no limit
    uint64_t alloc;     ///< buffers ever allocated
    uint64_t free;      ///< buffers ever given back
    uint64_t failed;    ///< requests that were refused, by the driver or the limit
    uint64_t lost;      ///< buffers in `free` that the driver refused to take back
} memrt_cuda_stats_t;

#ifdef __cplusplus
}
#endif

#endif
