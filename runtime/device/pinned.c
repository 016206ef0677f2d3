#include "runtime/device/pinned.h"

#include <string.h>

#include "runtime/alloc/guard.h"
#include "runtime/base/os.h"
#include "runtime/base/size.h"
#include "runtime/device/memory.h"

/// The driver pins whole pages, so that a block starts on one. For a larger alignment there is room
/// for a page before it, and right before the data stands where that begins.
static bool needs_shift(size_t align)
{
    return align > memrt__os_page_size();
}

static bool whole_size(size_t size, size_t align, size_t *out)
{
    *out = size;
    return !needs_shift(align) || memrt__size_add(size, align, out);
}

static void *shift(void *start, size_t align)
{
    char *data = (char *)start + align - ((uintptr_t)start & (align - 1));
    memcpy(data - sizeof(start), &start, sizeof(start));
    return data;
}

static void *unshift(const void *data)
{
    void *start;
    memcpy(&start, (const char *)data - sizeof(start), sizeof(start));
    return start;
}

static void *pinned_alloc(void *ctx, size_t size, size_t align)
{
    memrt__context_t context;
    memrt__piece_t piece = {.memory = MEMRT_MEMORY_PINNED};
    (void)ctx;
    if (!whole_size(size, align, &piece.size) ||
        memrt__context_enter(MEMRT_CUDA_DEVICE_CURRENT, &context) != MEMRT_OK) {
        return NULL;
    }
    memrt_status_t status = memrt__memory_take(&context, &piece);
    memrt__context_leave(&context);
    if (status != MEMRT_OK) {
        return NULL;
    }
    return needs_shift(align) ? shift(piece.data, align) : piece.data;
}

static void pinned_free(void *ctx, void *ptr, size_t size, size_t align)
{
    memrt__context_t context;
    memrt__piece_t piece = {.memory = MEMRT_MEMORY_PINNED};
    (void)ctx;
    (void)whole_size(size, align, &piece.size); /* as it did not overflow before */
    piece.data = needs_shift(align) ? unshift(ptr) : ptr;
    if (memrt__context_enter(MEMRT_CUDA_DEVICE_CURRENT, &context) != MEMRT_OK) {
        memrt__memory_give(NULL, &piece);
        return;
    }
    memrt__memory_give(&context, &piece);
    memrt__context_leave(&context);
}

const memrt_allocator_t memrt__pinned_allocator = {
    .struct_size = sizeof(memrt_allocator_t),
    .version = MEMRT_ALLOCATOR_VERSION,
    .name = "pinned",
    .alloc = pinned_alloc,
    .free = pinned_free,
};

bool memrt__is_pinned(const memrt_allocator_t *allocator)
{
    if (memrt__is_guard(allocator)) {
        allocator = memrt__guard_upstream(allocator);
    }
    return allocator->alloc == pinned_alloc;
}
