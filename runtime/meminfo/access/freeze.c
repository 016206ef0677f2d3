#include "runtime/meminfo/access/freeze.h"

#include "runtime/alloc/allocator.h"
#include "runtime/alloc/guard/frozen_pages.h"
#include "runtime/alloc/guard/guard.h"
#include "runtime/base/size.h"
#include "runtime/meminfo/block_memory.h"
#include "runtime/os/os.h"

/// Return whether the pages of a buffer may be protected: memory of another allocator may be of a
/// special kind, or in use by its owner.
static bool may_protect(const memrt_meminfo_t *mi)
{
    unsigned excluded = MEMRT__FLAG_DATA_BLOCK | MEMRT__FLAG_RESERVED | MEMRT__FLAG_DEVICE;
    const memrt_allocator_t *allocator = &memrt__policy_of(mi)->allocator;
    while (memrt__is_guard(allocator)) {
        allocator = memrt__guard_upstream(allocator);
    }
    return memrt__has_data((memrt_kind_t)mi->kind) && mi->external_allocator == NULL &&
           (memrt__flags_load_relaxed(&mi->flags) & excluded) == 0 &&
           allocator->alloc == memrt__default_allocator()->alloc;
}

/// Return the end of the bytes after the data that belong to the block alone.
static uintptr_t get_end(const memrt_meminfo_t *mi)
{
    uintptr_t page = memrt__os_page_size(), end = (uintptr_t)mi->data + mi->size;
    if ((memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_GUARDED) != 0) {
        return (end + page - 1) & ~(page - 1); /* only filled bytes follow in the page */
    }
    if (memrt__is_guard(&memrt__policy_of(mi)->allocator)) {
        return end; /* a redzone follows */
    }
    memrt__block_layout_t layout = memrt__block_layout_of(mi);
    return (uintptr_t)mi->data + memrt__block_memory_usable(mi, &layout);
}

/// Return the whole pages of a block after its header; `page_bytes` of 0: none.
static memrt__frozen_range_t get_range(const memrt_meminfo_t *mi)
{
    uintptr_t page = memrt__os_page_size(), data = (uintptr_t)mi->data;
    uintptr_t first = (data + page - 1) & ~(page - 1), end = get_end(mi) & ~(page - 1);
    bool has_pages = first < data + mi->size && first < end;
    return (memrt__frozen_range_t){data, mi->size, first, has_pages ? end - first : 0};
}

memrt_status_t memrt__freeze(memrt_meminfo_t *mi, size_t *bytes)
{
    if ((memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_TINY) != 0) {
        return MEMRT_ENOENT;
    }
    if (!may_protect(mi)) {
        return MEMRT_ENOTSUP;
    }
    memrt__frozen_range_t range = get_range(mi);
    if (range.page_bytes == 0) {
        return MEMRT_ENOENT;
    }
    /* The flag comes first, and stays: the last release looks for a record. */
    memrt__flags_set_relaxed(&mi->flags, MEMRT__FLAG_FROZEN);
    memrt_status_t status = memrt__frozen_pages_add(&range);
    if (status == MEMRT_OK) {
        size_t after_pages = range.pages + range.page_bytes;
        *bytes = memrt__size_min(after_pages, range.data + range.bytes) - range.pages;
    }
    return status;
}

memrt_status_t memrt__thaw(memrt_meminfo_t *mi)
{
    return memrt__frozen_pages_drop((uintptr_t)mi->data);
}

bool memrt__freeze_end_slow(memrt_meminfo_t *mi)
{
    if (!memrt__frozen_pages_end((uintptr_t)mi->data)) {
        return false;
    }
    memrt__flags_clear_relaxed(&mi->flags, MEMRT__FLAG_FROZEN);
    return true;
}
