#include "runtime/alloc/allocator.h"
#include "runtime/base/options.h"
#include "runtime/base/os.h"
#include "runtime/base/size.h"

/// Mappings from here on are placed and advised for huge pages: two of them at least.
#define HUGE_FROM (2 * MEMRT__HUGE_PAGE)

static bool whole_pages(size_t size, size_t *pages)
{
    return memrt__size_round_up(size, memrt__os_page_size(), pages);
}

static void *mapped_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    size_t bytes;
    if (!whole_pages(size, &bytes)) {
        return NULL;
    }
    bool huge = memrt__options.huge_pages && bytes >= HUGE_FROM;
    void *ptr = memrt__os_map(bytes, huge ? memrt__size_max(align, MEMRT__HUGE_PAGE) : align);
    if (ptr != NULL && huge) {
        memrt__os_advise_huge(ptr, bytes);
    }
    return ptr;
}

static void mapped_free(void *ctx, void *ptr, size_t size, size_t align)
{
    (void)ctx;
    (void)align;
    size_t bytes;
    if (whole_pages(size, &bytes)) {
        memrt__os_unmap(ptr, bytes);
    }
}

static void *mapped_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    (void)ctx;
    size_t old_bytes, new_bytes;
    if (!whole_pages(old_size, &old_bytes) || !whole_pages(new_size, &new_bytes)) {
        return NULL;
    }
    if (old_bytes == new_bytes) {
        return ptr;
    }
    void *moved = memrt__os_remap(ptr, old_bytes, new_bytes, align <= memrt__os_page_size());
    if (moved == NULL) {
        return memrt__allocator_move(&memrt__mapped_allocator, &memrt__mapped_allocator, ptr,
                                     old_size, new_size, align);
    }
    if (memrt__options.huge_pages && new_bytes >= HUGE_FROM) {
        memrt__os_advise_huge(moved, new_bytes);
    }
    return moved;
}

const memrt_allocator_t memrt__mapped_allocator = {
    .struct_size = sizeof(memrt_allocator_t),
    .version = MEMRT_ALLOCATOR_VERSION,
    .name = "mapped",
    .alloc = mapped_alloc,
    .alloc_zeroed = mapped_alloc, /* fresh pages are zero */
    .realloc = mapped_realloc,
    .free = mapped_free,
};
