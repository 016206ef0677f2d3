#include "runtime/cuda/pinned.h"

#include <string.h>

#include "runtime/alloc/guard/guard.h"
#include "runtime/base/shield.h"
#include "runtime/base/size.h"
#include "runtime/cuda/memory.h"
#include "runtime/os/os.h"

/// Return whether blocks need extra room for the alignment. The driver pins whole pages, so a block
/// starts at a page. For a larger alignment, at least a page precedes the data. The word before the
/// data then holds the start of the block.
static bool should_shift(size_t align)
{
    return align > memrt__os_page_size();
}

static bool compute_block_size(size_t size, size_t align, size_t *out)
{
    *out = size;
    return !should_shift(align) || memrt__size_add(size, align, out);
}

static void *shift_to_alignment(void *start, size_t align)
{
    MEMRT__ASSERT(align > memrt__os_page_size() && memrt__is_power_of_two(align));
    char *data = (char *)start + align - ((uintptr_t)start & (align - 1));
    memcpy(data - sizeof(start), &start, sizeof(start));
    return data;
}

static void *find_block_start(const void *data)
{
    void *start;
    memcpy(&start, (const char *)data - sizeof(start), sizeof(start));
    MEMRT__ASSERT((const char *)start < (const char *)data);
    return start;
}

static void *pinned_alloc(void *ctx, size_t size, size_t align)
{
    MEMRT__SHIELD;
    memrt__context_t context;
    memrt__piece_t piece = {.memory = MEMRT_MEMORY_PINNED};
    (void)ctx;
    if (!compute_block_size(size, align, &piece.size) ||
        memrt__context_enter(MEMRT_CUDA_DEVICE_CURRENT, &context) != MEMRT_OK) {
        return NULL;
    }
    memrt_status_t status = memrt__memory_take(&context, &piece);
    memrt__context_leave(&context);
    if (status != MEMRT_OK) {
        return NULL;
    }
    return should_shift(align) ? shift_to_alignment(piece.data, align) : piece.data;
}

static void pinned_free(void *ctx, void *ptr, size_t size, size_t align)
{
    MEMRT__SHIELD;
    memrt__context_t context;
    memrt__piece_t piece = {.memory = MEMRT_MEMORY_PINNED};
    (void)ctx;
    (void)compute_block_size(size, align, &piece.size); /* did not overflow in pinned_alloc() */
    piece.data = should_shift(align) ? find_block_start(ptr) : ptr;
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
