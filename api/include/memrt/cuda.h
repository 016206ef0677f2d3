#ifndef MEMRT_CUDA_H
#define MEMRT_CUDA_H

/// CUDA memory: types and functions of the slots of memrt_api_t that begin with `cuda_`.
///
/// Each slot that returns a status, except cuda_info, cuda_stats and cuda_set_limit, fails with
/// MEMRT_ENOTSUP without a driver, and with MEMRT_EDEVICE where the driver refuses. A function that
/// the driver calls in the order of a stream must not call these slots, and must not release the
/// last reference to a buffer.
///
/// The first call of such a slot loads the driver from the file that MEMRT_CUDA_DRIVER names. memrt
/// works in the primary context of each device and keeps the context for the life of the process.
/// The current context of the calling thread is left unchanged.
///
/// A process made by fork can use neither CUDA nor inherited buffers. In such a process, the
/// release of an inherited buffer does not call the driver.

#include <stddef.h>
#include <stdint.h>

#include <memrt/allocator.h>
#include <memrt/meminfo.h>
#include <memrt/policy.h>
#include <memrt/status.h>

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
    memrt_policy_t *policy; ///< borrowed; policy of the account; NULL: as cuda_policy
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
    uint64_t cached;    ///< bytes of freed pinned memory, cached for later requests
} memrt_cuda_stats_t;

/// Explain why CUDA cannot be used: write at most `length` bytes of a sentence with the closing
/// zero, and return the length of the whole sentence without the zero. 0: CUDA can be used.
typedef size_t (*memrt_cuda_why_not_fn)(char *text, size_t length);

/// Describe the last driver call that failed on this thread, with its error. The arguments and
/// the result are those of cuda_why_not.
typedef size_t (*memrt_cuda_error_fn)(char *text, size_t length);

/// Create a MemInfo over `size` bytes of a CUDA memory, count 1, contents undefined. A size of
/// 0 yields no address.
///
/// With `options->stream` and a device that has memory pools, the memory is allocated in the
/// order of the stream: usable at once in that stream, and elsewhere after cuda_wait. The last
/// release gives the memory back after all work on the buffer that memrt was informed of. The
/// memory is given back in the order of the stream; without a stream order, the release waits.
/// Failure: MEMRT_EINVAL for an unknown memory, a bad device ordinal and a bad name;
///          MEMRT_ENOMEM, also when the limit of the memory is reached. On failure nothing was
///          allocated.
typedef memrt_status_t (*memrt_cuda_new_fn)(size_t size, const memrt_cuda_options_t *options,
                                            memrt_meminfo_t **out);

/// Create a MemInfo over memory that other code allocated with CUDA, count 1. `options->dtor`
/// frees the memory.
///
/// The addresses of the first and the last byte are resolved for the device by
/// cuPointerGetAttribute(CU_POINTER_ATTRIBUTE_DEVICE_POINTER).
/// Ownership: memrt owns the memory on MEMRT_OK; on failure the caller still owns the memory.
/// Failure:   MEMRT_EDEVICE for an address that the driver does not know; MEMRT_EINVAL for NULL
///            with a size, a size beyond the address space, and a range across two pieces of
///            memory; MEMRT_ENOMEM.
typedef memrt_status_t (*memrt_cuda_adopt_fn)(uintptr_t address, size_t size,
                                              const memrt_cuda_options_t *options,
                                              memrt_meminfo_t **out);

/// Read the CUDA properties of a buffer.
/// Failure: MEMRT_ENOENT: the buffer is in ordinary memory; MEMRT_EINVAL: struct_size is not
///          set.
typedef memrt_status_t (*memrt_cuda_info_fn)(const memrt_meminfo_t *mi, memrt_cuda_info_t *out);

/// Record that work on the buffer was put into `stream`. The buffer's own stream waits for the
/// work from now on.
///
/// If the buffer has no stream, `stream` becomes the buffer's own stream, and must then live as
/// long as the buffer. In place of MEMRT_CUDA_STREAM_PER_THREAD, the legacy stream becomes the
/// buffer's own stream, and waits for the work.
/// Failure: MEMRT_EINVAL: `stream` is MEMRT_CUDA_STREAM_NONE; MEMRT_ENOTSUP: the buffer was not
///          made by cuda_new or cuda_adopt.
typedef memrt_status_t (*memrt_cuda_used_fn)(memrt_meminfo_t *mi, uintptr_t stream);

/// Make `stream` wait for all work on the buffer that memrt was informed of.
/// Failure: as cuda_used.
typedef memrt_status_t (*memrt_cuda_wait_fn)(memrt_meminfo_t *mi, uintptr_t stream);

/// Copy `size` bytes at `offset` of a buffer to the host, in `stream` (MEMRT_CUDA_STREAM_NONE:
/// the buffer's own stream), after all work on the buffer. The copy is complete when the call
/// returns.
/// Failure: MEMRT_EINVAL: the range ends beyond the buffer; MEMRT_ENOTSUP: as cuda_used.
typedef memrt_status_t (*memrt_cuda_read_fn)(memrt_meminfo_t *mi, size_t offset, void *out,
                                             size_t size, uintptr_t stream);

/// Copy `size` bytes of host memory, or of any CUDA memory, to `offset` of a buffer. Order and
/// completion are those of cuda_read.
/// Failure: as cuda_read, and MEMRT_EINVAL for a read-only buffer.
typedef memrt_status_t (*memrt_cuda_write_fn)(memrt_meminfo_t *mi, size_t offset, const void *data,
                                              size_t size, uintptr_t stream);

/// Create a stream on a device. The stream does not wait for the legacy stream.
/// Ownership: the caller frees the stream with cuda_stream_free, after every buffer that uses
///            the stream.
typedef memrt_status_t (*memrt_cuda_stream_new_fn)(int32_t device, uintptr_t *out);

/// Free a stream that cuda_stream_new made; pending work in the stream is still done.
/// Failure: MEMRT_EINVAL: `stream` is MEMRT_CUDA_STREAM_NONE or a predefined stream.
typedef memrt_status_t (*memrt_cuda_stream_free_fn)(int32_t device, uintptr_t stream);

/// Wait until all work in a stream is done.
/// Failure: MEMRT_EINVAL: `stream` is MEMRT_CUDA_STREAM_NONE.
typedef memrt_status_t (*memrt_cuda_stream_synchronize_fn)(int32_t device, uintptr_t stream);

/// Read the account of a CUDA memory. Adopted buffers are not in any of these accounts.
/// Failure: MEMRT_EINVAL: an unknown memory, or struct_size is not set.
typedef memrt_status_t (*memrt_cuda_stats_fn)(memrt_memory_t memory, memrt_cuda_stats_t *out);

/// Limit the bytes of a memory in use at once to `limit`; UINT64_MAX: no limit. Memory that is
/// already in use stays.
/// Failure: MEMRT_EINVAL: an unknown memory.
typedef memrt_status_t (*memrt_cuda_set_limit_fn)(memrt_memory_t memory, uint64_t limit);

/// Return the policy that accounts for buffers of a memory whose options name no policy;
/// MEMRT_MEMORY_HOST: the policy of adopted buffers. Borrowed, never destroyed.
/// Failure: NULL: an unknown memory, out of memory, or 4095 policies are live.
typedef memrt_policy_t *(*memrt_cuda_policy_fn)(memrt_memory_t memory);

/// Return the allocator of pinned host memory, for policies; static. Without a driver, every
/// request is refused.
///
/// Freed blocks are cached for later requests of about the same size, until release_unused. The
/// cache has at most 1.25 times the maximum of bytes in use at once, or 80 MiB if that is more. The
/// free of a block waits for all devices.
typedef const memrt_allocator_t *(*memrt_allocator_pinned_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
