#include "runtime/alloc/reserved.h"

#include <stdint.h>

#include "runtime/alloc/allocator.h"
#include "runtime/alloc/mapped.h"
#include "runtime/base/size.h"
#include "runtime/os/mapping_table.h"
#include "runtime/os/os.h"

/// Record at the start of a mapping. Sizes are whole pages, from the start of the mapping.
typedef struct record {
    size_t reserved;
    size_t accessible;
} record_t;

_Static_assert(sizeof(record_t) <= MEMRT__RESERVED_RECORD, "the record precedes the block");

static size_t get_offset(size_t align)
{
    return memrt__size_max(align, MEMRT__RESERVED_RECORD);
}

static record_t *get_record(void *ptr, size_t align)
{
    record_t *record = (record_t *)((char *)ptr - get_offset(align));
    MEMRT__ASSERT((size_t)record % memrt__os_page_size() == 0);
    MEMRT__ASSERT(record->accessible <= record->reserved);
    return record;
}

/// Compute the pages of record and block. False: too many bytes.
static bool compute_pages(size_t size, size_t align, size_t *pages)
{
    size_t bytes;
    return memrt__size_add(get_offset(align), size, &bytes) &&
           memrt__size_round_up(bytes, memrt__os_page_size(), pages) && *pages <= PTRDIFF_MAX;
}

static void *reserved_alloc(void *ctx, size_t size, size_t align)
{
    size_t pages, reserved;
    size_t most = memrt__size_max((size_t)(uintptr_t)ctx, size);
    if (!compute_pages(size, align, &pages) || !compute_pages(most, align, &reserved)) {
        return NULL;
    }
    memrt__huge_t huge = memrt__huge_of(MEMRT__INHERIT);
    bool has_huge = huge != MEMRT__HUGE_OFF && reserved >= MEMRT__HUGE_FROM;
    size_t least = has_huge ? MEMRT__HUGE_PAGE : memrt__os_page_size();
    char *mapping = memrt__os_reserve(reserved, memrt__size_max(align, least));
    if (mapping == NULL) {
        return NULL;
    }
    if (!memrt__os_commit(mapping, 0, pages)) {
        memrt__os_unmap(mapping, reserved);
        return NULL;
    }
    memrt__mapping_table_mark(mapping, MEMRT__USE_BLOCK);
    memrt__mapped_advise(mapping, pages, huge);
    *(record_t *)mapping = (record_t){.reserved = reserved, .accessible = pages};
    return mapping + get_offset(align);
}

static void reserved_free(void *ctx, void *ptr, size_t size, size_t align)
{
    (void)ctx;
    (void)size;
    record_t *record = get_record(ptr, align);
    memrt__mapped_delete(record, record->reserved);
}

/// Resize a block in its reserve. Returns 0, with nothing changed, beyond the reserve or when the
/// system refuses.
static int resize_in_place(void *ptr, size_t new_size, size_t align)
{
    record_t *record = get_record(ptr, align);
    size_t pages;
    if (!compute_pages(new_size, align, &pages) || pages > record->reserved) {
        return 0;
    }
    if (pages == record->accessible) {
        return 1;
    }
    if (!memrt__os_commit(record, record->accessible, pages)) {
        return 0;
    }
    if (pages > record->accessible) {
        memrt__mapped_advise(record, pages, memrt__huge_of(MEMRT__INHERIT));
    }
    record->accessible = pages;
    return 1;
}

static int reserved_try_expand(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    (void)ctx;
    (void)old_size;
    return resize_in_place(ptr, new_size, align);
}

/// A shrink succeeds also when the system takes no pages back: the block then keeps its pages.
static void *reserved_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    if (resize_in_place(ptr, new_size, align) || new_size <= old_size) {
        return ptr;
    }
    memrt_allocator_t self = memrt__reserved_allocator((size_t)(uintptr_t)ctx);
    return memrt__allocator_move(&self, &self, ptr, old_size, new_size, align);
}

static size_t reserved_good_size(void *ctx, size_t size, size_t align)
{
    size_t pages;
    (void)ctx;
    return compute_pages(size, align, &pages) ? pages - get_offset(align) : size;
}

static size_t reserved_usable_size(void *ctx, const void *ptr, size_t size, size_t align)
{
    (void)ctx;
    (void)size;
    return get_record((void *)(uintptr_t)ptr, align)->accessible - get_offset(align);
}

memrt_allocator_t memrt__reserved_allocator(size_t reserve)
{
    return (memrt_allocator_t){
        .struct_size = sizeof(memrt_allocator_t),
        .version = MEMRT_ALLOCATOR_VERSION,
        .name = "reserved",
        .ctx = (void *)(uintptr_t)reserve,
        .alloc = reserved_alloc,
        .alloc_zeroed = reserved_alloc, /* fresh pages are zero */
        .realloc = reserved_realloc,
        .free = reserved_free,
        .try_expand = reserved_try_expand,
        .usable_size = reserved_usable_size,
        .good_size = reserved_good_size,
    };
}
