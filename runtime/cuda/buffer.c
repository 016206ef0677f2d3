#include "runtime/cuda/buffer.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/atomics.h"
#include "runtime/base/shield.h"
#include "runtime/base/size.h"
#include "runtime/config/fault_injection.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/pinned.h"
#include "runtime/cuda/stream.h"
#include "runtime/cuda/transfer.h"
#include "runtime/meminfo/meminfo.h"

/// A CUDA buffer, the context of its MemInfo's destructor.
///
/// Work on the buffer may be queued in many streams. `stream` waits for all of the work, because
/// memrt__buffer_used() makes `stream` wait for each other stream. Therefore one stream is enough
/// to wait for, and to free the buffer in.
typedef struct buffer {
    memrt__piece_t piece; ///< fixed, except `stream`, which is filled in before the free
    size_t stream;        ///< atomic; 0: no work queued; changes from 0 once
    int32_t device;       ///< fixed; device whose primary context does the work
    bool adopted;         ///< fixed; foreign code owns the memory
    memrt_dtor_fn dtor;   ///< fixed; the caller's destructor, called after the free
    void *dtor_info;
} buffer_t;

static void free_memory(buffer_t *buffer)
{
    MEMRT__SHIELD;
    memrt__context_t context;
    MEMRT__ASSERT(!buffer->adopted && buffer->piece.size != 0);
    buffer->piece.stream = memrt__load_acquire(&buffer->stream);
    if (memrt__context_enter(buffer->device, &context) != MEMRT_OK) {
        memrt__memory_give(NULL, &buffer->piece);
        return;
    }
    memrt__memory_give(&context, &buffer->piece);
    memrt__context_leave(&context);
}

static void buffer_dtor(void *data, size_t size, void *info)
{
    buffer_t *buffer = info;
    MEMRT__ASSERT(buffer->piece.size == size);
    if (!buffer->adopted && size != 0) {
        free_memory(buffer);
    }
    if (buffer->dtor != NULL) {
        buffer->dtor(data, size, buffer->dtor_info);
    }
    free(buffer);
}

/// Return the CUDA buffer of a MemInfo. NULL for memory outside of CUDA, and for a block of a NumPy
/// handler.
static buffer_t *get_buffer(const memrt_meminfo_t *mi)
{
    return mi->dtor == buffer_dtor ? mi->dtor_info : NULL;
}

static memrt_status_t complete_options(const memrt_cuda_options_t *options,
                                       memrt_cuda_options_t *out)
{
    *out = (memrt_cuda_options_t){.device = MEMRT_CUDA_DEVICE_CURRENT};
    if (options != NULL) {
        if (options->struct_size < offsetof(memrt_cuda_options_t, stream)) {
            return MEMRT_EINVAL;
        }
        memcpy(out, options, memrt__size_min(options->struct_size, sizeof(*out)));
    }
    if (out->memory == MEMRT_MEMORY_HOST) {
        out->memory = MEMRT_MEMORY_DEVICE;
    }
    return out->memory <= MEMRT_MEMORY_PINNED ? MEMRT_OK : MEMRT_EINVAL;
}

static memrt_policy_t *choose_policy(const memrt_cuda_options_t *options, memrt_memory_t memory)
{
    return options->policy != NULL ? options->policy : memrt__memory_policy(memory);
}

static buffer_t *alloc_buffer(const memrt_cuda_options_t *options)
{
    buffer_t *buffer = memrt__fault_is_due() ? NULL : malloc(sizeof(*buffer));
    if (buffer != NULL) {
        *buffer = (buffer_t){
            .piece = {.memory = (memrt_memory_t)options->memory, .stream = options->stream},
            .stream = options->stream,
            .dtor = options->dtor,
            .dtor_info = options->dtor_info,
        };
    }
    return buffer;
}

/// Create the MemInfo over a buffer that has its memory.
static memrt_status_t create_meminfo(buffer_t *buffer, const memrt_cuda_options_t *options,
                                     memrt_policy_t *policy, memrt_meminfo_t **out)
{
    memrt_new_options_t adopted = {.struct_size = sizeof(adopted),
                                   .policy = policy,
                                   .readonly = options->readonly,
                                   .dtor = buffer_dtor,
                                   .dtor_info = buffer,
                                   .name = options->name};
    memrt_meminfo_t *mi;
    memrt_status_t status =
        memrt__meminfo_adopt(buffer->piece.data, buffer->piece.size, &adopted, &mi);
    if (status != MEMRT_OK) {
        return status;
    }
    if (buffer->piece.memory == MEMRT_MEMORY_DEVICE) {
        memrt__flags_set_relaxed(&mi->flags, MEMRT_FLAG_DEVICE);
    }
    *out = mi;
    return MEMRT_OK;
}

static memrt_status_t alloc_memory(buffer_t *buffer, int32_t device, size_t size)
{
    MEMRT__SHIELD;
    memrt__context_t context;
    memrt_status_t status = memrt__context_enter(device, &context);
    if (status != MEMRT_OK) {
        return status;
    }
    buffer->device = context.device;
    buffer->piece.size = size;
    if (size != 0) {
        status = memrt__memory_take(&context, &buffer->piece);
    }
    memrt__context_leave(&context);
    return status;
}

memrt_status_t memrt__buffer_new(size_t size, const memrt_cuda_options_t *options,
                                 memrt_meminfo_t **out)
{
    memrt_cuda_options_t all;
    memrt_status_t status = complete_options(options, &all);
    if (status != MEMRT_OK) {
        return status;
    }
    if (memrt__driver(NULL, 0) == NULL) {
        return MEMRT_ENOTSUP;
    }
    memrt_policy_t *policy = choose_policy(&all, (memrt_memory_t)all.memory);
    buffer_t *buffer = policy == NULL ? NULL : alloc_buffer(&all);
    if (buffer == NULL) {
        return MEMRT_ENOMEM;
    }
    status = alloc_memory(buffer, all.device, size);
    if (status != MEMRT_OK) {
        goto free_buffer;
    }
    status = create_meminfo(buffer, &all, policy, out);
    if (status != MEMRT_OK) {
        goto free_memory;
    }
    return MEMRT_OK;

free_memory:
    if (size != 0) {
        free_memory(buffer);
    }
free_buffer:
    free(buffer);
    return status;
}

/// Translate an address to the address in the device's own context. The last byte must have the
/// same distance from the first in that context. So all bytes are one allocation, or several mapped
/// as one.
static memrt_status_t resolve_address(const memrt__context_t *context, uintptr_t address,
                                      size_t size, memrt__cu_ptr_t *out)
{
    const memrt__driver_t *driver = context->driver;
    memrt__cu_ptr_t first = 0, last = 0;
    memrt_status_t status =
        MEMRT__CU(driver, pointer_attribute, &first, MEMRT__CU_POINTER_DEVICE_POINTER, address);
    if (status == MEMRT_OK) {
        status = MEMRT__CU(driver, pointer_attribute, &last, MEMRT__CU_POINTER_DEVICE_POINTER,
                           address + (size - 1));
    }
    if (status == MEMRT_OK && last - first != size - 1) {
        status = MEMRT_EINVAL;
    }
    *out = first;
    return status;
}

/// Fill in kind, address and device of foreign memory. Missing driver attributes default to memory
/// of the current device.
static void describe_memory(const memrt__context_t *context, memrt__cu_ptr_t ptr, buffer_t *buffer)
{
    const memrt__driver_t *driver = context->driver;
    int device = context->device;
    unsigned type = 0, managed = 0;
    (void)driver->pointer_attribute(&type, MEMRT__CU_POINTER_MEMORY_TYPE, ptr);
    (void)driver->pointer_attribute(&managed, MEMRT__CU_POINTER_IS_MANAGED, ptr);
    (void)driver->pointer_attribute(&device, MEMRT__CU_POINTER_DEVICE_ORDINAL, ptr);
    bool pinned = type == MEMRT__CU_MEMORYTYPE_HOST;
    buffer->piece.memory = managed != 0 ? MEMRT_MEMORY_MANAGED
                           : pinned     ? MEMRT_MEMORY_PINNED
                                        : MEMRT_MEMORY_DEVICE;
    buffer->piece.data = (void *)(uintptr_t)ptr;
    buffer->device = device;
}

static memrt_status_t find_foreign_memory(buffer_t *buffer, uintptr_t address, size_t size)
{
    memrt__context_t context;
    memrt_status_t status = memrt__context_enter(MEMRT_CUDA_DEVICE_CURRENT, &context);
    if (status != MEMRT_OK) {
        return status;
    }
    buffer->adopted = true;
    buffer->device = context.device;
    buffer->piece.size = size;
    if (size != 0) {
        memrt__cu_ptr_t ptr;
        status = resolve_address(&context, address, size, &ptr);
        if (status == MEMRT_OK) {
            describe_memory(&context, ptr, buffer);
        }
    }
    memrt__context_leave(&context);
    return status;
}

memrt_status_t memrt__buffer_adopt(uintptr_t address, size_t size,
                                   const memrt_cuda_options_t *options, memrt_meminfo_t **out)
{
    memrt_cuda_options_t all;
    size_t end;
    memrt_status_t status = complete_options(options, &all);
    if (status != MEMRT_OK || (address == 0 && size != 0) ||
        !memrt__size_add(address, size, &end)) {
        return MEMRT_EINVAL;
    }
    if (memrt__driver(NULL, 0) == NULL) {
        return MEMRT_ENOTSUP;
    }
    memrt_policy_t *policy = choose_policy(&all, MEMRT_MEMORY_HOST);
    buffer_t *buffer = policy == NULL ? NULL : alloc_buffer(&all);
    if (buffer == NULL) {
        return MEMRT_ENOMEM;
    }
    status = find_foreign_memory(buffer, address, size);
    if (status == MEMRT_OK) {
        status = create_meminfo(buffer, &all, policy, out);
    }
    if (status != MEMRT_OK) {
        free(buffer);
    }
    return status;
}

static memrt_cuda_info_t get_info(const memrt_meminfo_t *mi)
{
    const buffer_t *buffer = get_buffer(mi);
    if (buffer == NULL) {
        return (memrt_cuda_info_t){.memory = MEMRT_MEMORY_PINNED, .device = -1};
    }
    return (memrt_cuda_info_t){
        .memory = buffer->piece.memory,
        .device = buffer->device,
        .stream = memrt__load_acquire(&buffer->stream),
        .adopted = buffer->adopted,
    };
}

memrt_status_t memrt__buffer_info(const memrt_meminfo_t *mi, memrt_cuda_info_t *out)
{
    size_t room = out->struct_size;
    if (room < sizeof(out->struct_size)) {
        return MEMRT_EINVAL;
    }
    if (get_buffer(mi) == NULL && !memrt__is_pinned(&memrt__policy_of(mi)->allocator)) {
        return MEMRT_ENOENT;
    }
    memrt_cuda_info_t all = get_info(mi);
    MEMRT__ASSERT(all.memory <= MEMRT_MEMORY_PINNED);
    all.struct_size = room;
    memcpy(out, &all, memrt__size_min(room, sizeof(all)));
    return MEMRT_OK;
}

/// Order a stream and the stream of a buffer: either may be `stream`, which waits for `before`.
static memrt_status_t order_streams(const buffer_t *buffer, uintptr_t stream, uintptr_t before)
{
    memrt__context_t context;
    memrt_status_t status = memrt__context_enter(buffer->device, &context);
    if (status == MEMRT_OK) {
        status = memrt__stream_follow(&context, stream, before);
        memrt__context_leave(&context);
    }
    return status;
}

memrt_status_t memrt__buffer_used(memrt_meminfo_t *mi, uintptr_t stream)
{
    buffer_t *buffer = get_buffer(mi);
    if (buffer == NULL) {
        return MEMRT_ENOTSUP;
    }
    if (stream == MEMRT_CUDA_STREAM_NONE) {
        return MEMRT_EINVAL;
    }
    /* A per-thread handle names another stream in each thread. So the legacy stream waits
       instead. */
    uintptr_t own = stream == MEMRT_CUDA_STREAM_PER_THREAD ? MEMRT_CUDA_STREAM_LEGACY : stream;
    if (own != stream && memrt__load_acquire(&buffer->stream) == MEMRT_CUDA_STREAM_NONE) {
        /* Order first: after a failure, the buffer still has no stream. */
        memrt_status_t status = order_streams(buffer, own, stream);
        if (status != MEMRT_OK) {
            return status;
        }
    }
    return memrt__cas_release(&buffer->stream, MEMRT_CUDA_STREAM_NONE, own)
               ? MEMRT_OK
               : order_streams(buffer, memrt__load_acquire(&buffer->stream), stream);
}

memrt_status_t memrt__buffer_wait(memrt_meminfo_t *mi, uintptr_t stream)
{
    const buffer_t *buffer = get_buffer(mi);
    if (buffer == NULL) {
        return MEMRT_ENOTSUP;
    }
    if (stream == MEMRT_CUDA_STREAM_NONE) {
        return MEMRT_EINVAL;
    }
    return order_streams(buffer, stream, memrt__load_acquire(&buffer->stream));
}

static bool is_within_meminfo(const memrt_meminfo_t *mi, size_t offset, size_t size)
{
    return offset <= mi->size && size <= mi->size - offset;
}

memrt_status_t memrt__buffer_read(memrt_meminfo_t *mi, size_t offset, void *out, size_t size,
                                  uintptr_t stream)
{
    const buffer_t *buffer = get_buffer(mi);
    if (buffer == NULL) {
        return MEMRT_ENOTSUP;
    }
    if (!is_within_meminfo(mi, offset, size)) {
        return MEMRT_EINVAL;
    }
    memrt__transfer_t transfer = {(memrt__cu_ptr_t)(uintptr_t)out, (uintptr_t)mi->data + offset,
                                  size, stream};
    return size == 0 ? MEMRT_OK
                     : memrt__transfer_run(buffer->device, memrt__load_acquire(&buffer->stream),
                                           &transfer);
}

memrt_status_t memrt__buffer_write(memrt_meminfo_t *mi, size_t offset, const void *data,
                                   size_t size, uintptr_t stream)
{
    const buffer_t *buffer = get_buffer(mi);
    bool readonly = (memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_READONLY) != 0;
    if (buffer == NULL) {
        return MEMRT_ENOTSUP;
    }
    if (readonly || !is_within_meminfo(mi, offset, size)) {
        return MEMRT_EINVAL;
    }
    memrt__transfer_t transfer = {(uintptr_t)mi->data + offset, (memrt__cu_ptr_t)(uintptr_t)data,
                                  size, stream};
    return size == 0 ? MEMRT_OK
                     : memrt__transfer_run(buffer->device, memrt__load_acquire(&buffer->stream),
                                           &transfer);
}
