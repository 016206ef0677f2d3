#include "runtime/alloc/mapped.h"

#include "runtime/alloc/allocator.h"
#include "runtime/base/options.h"
#include "runtime/base/os.h"
#include "runtime/base/size.h"

static bool is_huge(size_t bytes)
{
    return memrt__options.huge_pages && bytes >= MEMRT__HUGE_FROM;
}

void memrt__mapped_advise(void *mapping, size_t bytes)
{
    if (is_huge(bytes)) {
        memrt__os_advise_huge(mapping, bytes);
    }
}

void *memrt__mapped_new(size_t bytes, size_t align)
{
    size_t page = memrt__os_page_size();
    if (!is_huge(bytes)) {
        return memrt__os_map(bytes, 0, align);
    }
    void *mapping = align <= page
                        ? memrt__os_map(bytes, page, MEMRT__HUGE_PAGE)
                        : memrt__os_map(bytes, 0, memrt__size_max(align, MEMRT__HUGE_PAGE));
    if (mapping != NULL) {
        memrt__mapped_advise(mapping, bytes);
    }
    return mapping;
}

static bool whole_pages(size_t size, size_t *pages)
{
    return memrt__size_round_up(size, memrt__os_page_size(), pages);
}

static void *mapped_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    size_t bytes;
    return whole_pages(size, &bytes) ? memrt__mapped_new(bytes, align) : NULL;
}

static void mapped_free(void *ctx, void *ptr, size_t size, size_t align)
{
    (void)ctx;
    (void)align;
    size_t bytes;
    if (whole_pages(size, &bytes) && !memrt__os_unmap(ptr, bytes)) {
        memrt__os_discard(ptr, bytes); /* the addresses are lost, their pages are not */
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
    memrt__mapped_advise(moved, new_bytes);
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
