#ifndef MEMRT_CUDA_H
#define MEMRT_CUDA_H

/// Memory of CUDA: what the calls of memrt_api_t that begin with `cuda_` take and give.
///
/// The driver is loaded at the first of these calls, from the file that MEMRT_CUDA_DRIVER names.
/// memrt works in the primary context of each device, which it keeps for the life of the process,
/// and leaves the calling thread's current context as it was. A process made by fork cannot use
/// CUDA, nor the buffers that it inherited: there they are let go without a word to the driver.

#include <stddef.h>
#include <stdint.h>

#include <memrt/meminfo.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Where the bytes of a buffer are, and who can use its address.
typedef enum memrt_memory {
    MEMRT_MEMORY_HOST = 0,    ///< ordinary memory
    MEMRT_MEMORY_DEVICE = 1,  ///< of a device; the host must not touch it
    MEMRT_MEMORY_MANAGED = 2, ///< moves between host and devices as it is used
    MEMRT_MEMORY_PINNED = 3,  ///< of the host, with a fixed place that devices reach, too
} memrt_memory_t;

/// In memrt_meminfo_t.flags: its bytes are a device's, the host must not touch them.
#define MEMRT_FLAG_DEVICE (1u << 17)

/// Streams by their handles of the driver. 0 is none: work that is not ordered by a stream.
#define MEMRT_CUDA_STREAM_NONE ((uintptr_t)0)
#define MEMRT_CUDA_STREAM_LEGACY ((uintptr_t)1)     ///< CU_STREAM_LEGACY
#define MEMRT_CUDA_STREAM_PER_THREAD ((uintptr_t)2) ///< CU_STREAM_PER_THREAD

/// The device of the calling thread's current context, the first where there is none.
#define MEMRT_CUDA_DEVICE_CURRENT (-1)

/// Settings of a new buffer. Set `struct_size` and `device`, leave the rest zero for the default.
typedef struct memrt_cuda_options {
    size_t struct_size; ///< sizeof(memrt_cuda_options_t)
    uint32_t memory;    ///< a memrt_memory_t; 0: MEMRT_MEMORY_DEVICE. Not for cuda_adopt
    int32_t device;     ///< ordinal, or MEMRT_CUDA_DEVICE_CURRENT. Not for cuda_adopt
    uintptr_t stream;   ///< that it is first used in, and freed in the order of; it must live as
                        ///< long as the buffer
    int32_t readonly;   ///< non-zero: memrt_api_t.readonly says so, and bindings honour it
    uint32_t reserved;  ///< 0
    memrt_dtor_fn dtor; ///< after the memory went back to the driver; NULL: nothing to run
    void *dtor_info;    ///< third argument of dtor
    const char *name;   ///< NULL: none; copied, at most MEMRT_NAME_MAX bytes
    struct memrt_policy *policy; ///< borrowed; whose account it is on, NULL: as cuda_policy
} memrt_cuda_options_t;

/// What CUDA knows of a buffer.
typedef struct memrt_cuda_info {
    size_t struct_size; ///< set by the caller to sizeof(memrt_cuda_info_t)
    uint32_t memory;    ///< a memrt_memory_t
    int32_t device;     ///< ordinal; -1: of none, as for NumPy's pinned arrays
    uintptr_t stream;   ///< that all work on it is done in the order of, 0: none waits
    int32_t adopted;    ///< non-zero: somebody else allocated it
    uint32_t reserved;  ///< 0
} memrt_cuda_info_t;

/// One account of what memrt allocated in one memory, for all devices. Exact; of several threads'
/// changes `live` and `peak` are in one order.
typedef struct memrt_cuda_stats {
    size_t struct_size; ///< set by the caller to sizeof(memrt_cuda_stats_t)
    uint64_t live;      ///< bytes in use now
    uint64_t peak;      ///< most bytes in use at once since the start
    uint64_t limit;     ///< most bytes in use at once that are allowed; UINT64_MAX: no limit
    uint64_t alloc;     ///< buffers ever allocated
    uint64_t free;      ///< buffers ever given back
    uint64_t failed;    ///< requests that were refused, by the driver or the limit
    uint64_t lost;      ///< of `free`, those that the driver refused to take back
} memrt_cuda_stats_t;

#ifdef __cplusplus
}
#endif

#endif
