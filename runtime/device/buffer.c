#include "runtime/device/buffer.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/atomics.h"
#include "runtime/base/failure.h"
#include "runtime/base/size.h"
#include "runtime/device/memory.h"
#include "runtime/device/pinned.h"
#include "runtime/device/stream.h"
#include "runtime/meminfo/meminfo.h"

/// What stands behind a buffer: the context of its MemInfo's destructor.
///
/// Work on the buffer may be in many streams, but `stream` waits for all of it: each other stream
/// says so when it was given some. So one stream is enough to tell others, and to free in.
typedef struct buffer {
    memrt__piece_t piece; ///< fixed, but for `stream`, which is filled in at the end
    size_t stream;        ///< atomic; 0: no work waits, from which it can change once
    int32_t device;       ///< fixed; whose primary context its work is done in
    bool adopted;         ///< fixed; the memory is somebody else's
    memrt_dtor_fn dtor;   ///< fixed; the caller's, after the memory went back
    void *dtor_info;
} buffer_t;

static void give_memory(buffer_t *buffer)
{
    memrt__context_t context;
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
    if (!buffer->adopted && size != 0) {
        give_memory(buffer);
    }
    if (buffer->dtor != NULL) {
        buffer->dtor(data, size, buffer->dtor_info);
    }
    free(buffer);
}

/// NULL: it is none of CUDA's, or a block of NumPy's.
static buffer_t *buffer_of(const memrt_meminfo_t *mi)
{
    return mi->dtor == buffer_dtor ? mi->dtor_info : NULL;
}

static memrt_status_t complete(const memrt_cuda_options_t *options, memrt_cuda_options_t *out)
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

static memrt_policy_t *policy_for(const memrt_cuda_options_t *options, memrt_memory_t memory)
{
    return options->policy != NULL ? options->policy : memrt__memory_policy(memory);
}

static buffer_t *new_buffer(const memrt_cuda_options_t *options)
{
    buffer_t *buffer = memrt__failure_due() ? NULL : malloc(sizeof(*buffer));
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

/// Put a buffer that has its memory behind a MemInfo.
static memrt_status_t enclose(buffer_t *buffer, const memrt_cuda_options_t *options,
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

static memrt_status_t take_memory(buffer_t *buffer, int32_t device, size_t size)
{
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
    memrt_status_t status = complete(options, &all);
    if (status != MEMRT_OK) {
        return status;
    }
    if (memrt__driver(NULL, 0) == NULL) {
        return MEMRT_ENOTSUP;
    }
    memrt_policy_t *policy = policy_for(&all, (memrt_memory_t)all.memory);
    buffer_t *buffer = policy == NULL ? NULL : new_buffer(&all);
    if (buffer == NULL) {
        return MEMRT_ENOMEM;
    }
    status = take_memory(buffer, all.device, size);
    if (status != MEMRT_OK) {
        goto free_buffer;
    }
    status = enclose(buffer, &all, policy, out);
    if (status != MEMRT_OK) {
        goto give_memory;
    }
    return MEMRT_OK;

give_memory:
    if (size != 0) {
        give_memory(buffer);
    }
free_buffer:
    free(buffer);
    return status;
}

/// The address as the device's own context has it. That the last byte is as far from the first
/// there shows that all is one piece of memory, or several that were mapped as one.
static memrt_status_t resolve(const memrt__context_t *context, uintptr_t address, size_t size,
                              memrt__cu_ptr_t *out)
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

/// What memory it is. What the driver does not say is as for memory of the present device.
static void describe(const memrt__context_t *context, memrt__cu_ptr_t ptr, buffer_t *buffer)
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

static memrt_status_t find_memory(buffer_t *buffer, uintptr_t address, size_t size)
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
        status = resolve(&context, address, size, &ptr);
        if (status == MEMRT_OK) {
            describe(&context, ptr, buffer);
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
    memrt_status_t status = complete(options, &all);
    if (status != MEMRT_OK || (address == 0 && size != 0) ||
        !memrt__size_add(address, size, &end)) {
        return MEMRT_EINVAL;
    }
    if (memrt__driver(NULL, 0) == NULL) {
        return MEMRT_ENOTSUP;
    }
    memrt_policy_t *policy = policy_for(&all, MEMRT_MEMORY_HOST);
    buffer_t *buffer = policy == NULL ? NULL : new_buffer(&all);
    if (buffer == NULL) {
        return MEMRT_ENOMEM;
    }
    status = find_memory(buffer, address, size);
    if (status == MEMRT_OK) {
        status = enclose(buffer, &all, policy, out);
    }
    if (status != MEMRT_OK) {
        free(buffer);
    }
    return status;
}

static memrt_cuda_info_t info_of(const memrt_meminfo_t *mi)
{
    const buffer_t *buffer = buffer_of(mi);
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
    if (buffer_of(mi) == NULL && !memrt__is_pinned(&memrt__policy_of(mi)->allocator)) {
        return MEMRT_ENOENT;
    }
    memrt_cuda_info_t all = info_of(mi);
    all.struct_size = room;
    memcpy(out, &all, memrt__size_min(room, sizeof(all)));
    return MEMRT_OK;
}

/// Order a stream and that of a buffer: `stream` after the buffer's, or the other way round.
static memrt_status_t order(const buffer_t *buffer, uintptr_t stream, uintptr_t before)
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
    buffer_t *buffer = buffer_of(mi);
    if (buffer == NULL) {
        return MEMRT_ENOTSUP;
    }
    if (stream == MEMRT_CUDA_STREAM_NONE) {
        return MEMRT_EINVAL;
    }
    /* The stream of this thread is another one to others: the legacy stream waits in its place. */
    uintptr_t own = stream == MEMRT_CUDA_STREAM_PER_THREAD ? MEMRT_CUDA_STREAM_LEGACY : stream;
    if (memrt__cas_release(&buffer->stream, MEMRT_CUDA_STREAM_NONE, own) && own == stream) {
        return MEMRT_OK;
    }
    return order(buffer, memrt__load_acquire(&buffer->stream), stream);
}

memrt_status_t memrt__buffer_wait(memrt_meminfo_t *mi, uintptr_t stream)
{
    const buffer_t *buffer = buffer_of(mi);
    if (buffer == NULL) {
        return MEMRT_ENOTSUP;
    }
    if (stream == MEMRT_CUDA_STREAM_NONE) {
        return MEMRT_EINVAL;
    }
    return order(buffer, stream, memrt__load_acquire(&buffer->stream));
}

/// A copy that is over when this returns.
typedef struct transfer {
    memrt__cu_ptr_t to, from;
    size_t size;
    uintptr_t stream; ///< 0: that of the buffer
} transfer_t;

static memrt_status_t copy_in(const memrt__context_t *context, const transfer_t *transfer,
                              uintptr_t stream, uintptr_t before)
{
    const memrt__driver_t *driver = context->driver;
    if (stream == MEMRT_CUDA_STREAM_NONE) {
        return MEMRT__CU(driver, copy, transfer->to, transfer->from, transfer->size);
    }
    memrt_status_t status = memrt__stream_follow(context, stream, before);
    if (status == MEMRT_OK) {
        status = MEMRT__CU(driver, copy_async, transfer->to, transfer->from, transfer->size,
                           memrt__stream_handle(stream));
    }
    if (status == MEMRT_OK) {
        status = MEMRT__CU(driver, stream_synchronize, memrt__stream_handle(stream));
    }
    return status;
}

static memrt_status_t copy(const buffer_t *buffer, const transfer_t *transfer)
{
    memrt__context_t context;
    uintptr_t own = memrt__load_acquire(&buffer->stream);
    memrt_status_t status = memrt__context_enter(buffer->device, &context);
    if (status == MEMRT_OK) {
        uintptr_t stream = transfer->stream == MEMRT_CUDA_STREAM_NONE ? own : transfer->stream;
        status = copy_in(&context, transfer, stream, own);
        memrt__context_leave(&context);
    }
    return status;
}

static bool lies_within(const memrt_meminfo_t *mi, size_t offset, size_t size)
{
    return offset <= mi->size && size <= mi->size - offset;
}

memrt_status_t memrt__buffer_read(memrt_meminfo_t *mi, size_t offset, void *out, size_t size,
                                  uintptr_t stream)
{
    const buffer_t *buffer = buffer_of(mi);
    if (buffer == NULL) {
        return MEMRT_ENOTSUP;
    }
    if (!lies_within(mi, offset, size)) {
        return MEMRT_EINVAL;
    }
    transfer_t transfer = {(memrt__cu_ptr_t)(uintptr_t)out, (uintptr_t)mi->data + offset, size,
                           stream};
    return size == 0 ? MEMRT_OK : copy(buffer, &transfer);
}

memrt_status_t memrt__buffer_write(memrt_meminfo_t *mi, size_t offset, const void *data,
                                   size_t size, uintptr_t stream)
{
    const buffer_t *buffer = buffer_of(mi);
    bool readonly = (memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_READONLY) != 0;
    if (buffer == NULL) {
        return MEMRT_ENOTSUP;
    }
    if (readonly || !lies_within(mi, offset, size)) {
        return MEMRT_EINVAL;
    }
    transfer_t transfer = {(uintptr_t)mi->data + offset, (memrt__cu_ptr_t)(uintptr_t)data, size,
                           stream};
    return size == 0 ? MEMRT_OK : copy(buffer, &transfer);
}
