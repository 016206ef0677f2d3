/// Prefetching adaptor: maps the pages of new blocks to memory, so that first writes cause no page
/// faults.

#include "runtime/alloc/adaptors/adaptor_functions.h"
#include "runtime/os/os.h"

/// Write to each page of the end of a block, whose contents are zero or undefined. Other threads
/// may use the pages of the first and last byte, so only bytes of the block change.
static void touch_pages(char *start, char *end)
{
    size_t page = memrt__os_page_size();
    for (char *at = start; at < end; at += page - ((size_t)at & (page - 1))) {
        *(volatile char *)at = 0;
    }
}

/// Prefetch the pages from byte `from` of a block on. The block is usable after any result.
static void prefetch(const memrt__adaptor_t *adaptor, void *ptr, size_t from, size_t size)
{
    if (ptr == NULL || size <= from || size < adaptor->options.amount) {
        return;
    }
    char *start = (char *)ptr + from, *end = (char *)ptr + size;
    if (!memrt__os_populate(start, size - from)) {
        touch_pages(start, end);
    }
}

static void *prefetching_alloc(void *ctx, size_t size, size_t align)
{
    const memrt__adaptor_t *adaptor = ctx;
    void *ptr = memrt__allocator_alloc(&adaptor->upstream, size, align, false);
    prefetch(adaptor, ptr, 0, size);
    return ptr;
}

static void *prefetching_alloc_zeroed(void *ctx, size_t size, size_t align)
{
    const memrt__adaptor_t *adaptor = ctx;
    void *ptr = memrt__allocator_alloc(&adaptor->upstream, size, align, true);
    prefetch(adaptor, ptr, 0, size);
    return ptr;
}

static void *prefetching_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size,
                                 size_t align)
{
    const memrt__adaptor_t *adaptor = ctx;
    void *moved = memrt__allocator_realloc(&adaptor->upstream, ptr, old_size, new_size, align);
    prefetch(adaptor, moved, old_size, new_size);
    return moved;
}

const memrt__adaptor_functions_t memrt__prefetching_functions = {
    .name = "prefetching",
    .alloc = prefetching_alloc,
    .alloc_zeroed = prefetching_alloc_zeroed,
    .realloc = prefetching_realloc,
};
