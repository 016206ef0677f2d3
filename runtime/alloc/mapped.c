#include "runtime/alloc/mapped.h"

#include "runtime/alloc/allocator.h"
#include "runtime/base/atomics.h"
#include "runtime/base/size.h"
#include "runtime/config/options.h"
#include "runtime/os/mapping_table.h"
#include "runtime/os/os.h"

static bool should_use_huge_pages(size_t bytes, memrt__huge_t huge)
{
    switch (huge) {
    case MEMRT__HUGE_ADVISE:
        return bytes > MEMRT__HUGE_PAGE; /* the bytes include the header */
    case MEMRT__HUGE_LARGE:
        return bytes >= MEMRT__HUGE_FROM;
    case MEMRT__HUGE_OFF:
        break;
    }
    return false;
}

memrt__huge_t memrt__huge_of(size_t chosen)
{
    bool own = chosen != MEMRT__INHERIT;
    MEMRT__ASSERT(!own || chosen <= MEMRT__HUGE_LARGE);
    return (memrt__huge_t)(own ? chosen : memrt__load_relaxed(&memrt__options.huge_pages));
}

void memrt__mapped_advise(void *mapping, size_t bytes, memrt__huge_t huge)
{
    if (should_use_huge_pages(bytes, huge)) {
        memrt__os_advise_huge(mapping, bytes, true);
    }
}

void memrt__mapped_advise_anew(void *mapping, size_t bytes, memrt__huge_t huge)
{
    memrt__os_advise_huge(mapping, bytes, should_use_huge_pages(bytes, huge));
}

static void *map_placed(size_t bytes, size_t align, memrt__huge_t huge)
{
    size_t page = memrt__os_page_size();
    MEMRT__ASSERT(bytes % page == 0 && memrt__is_power_of_two(align));
    if (!should_use_huge_pages(bytes, huge)) {
        return memrt__os_map(bytes, 0, align);
    }
    size_t lead = align == page ? page : 0; /* so that page-aligned data begins on a huge page */
    void *mapping = memrt__os_map(bytes, lead, memrt__size_max(align, MEMRT__HUGE_PAGE));
    if (mapping != NULL) {
        memrt__mapped_advise(mapping, bytes, huge);
    }
    return mapping;
}

void *memrt__mapped_new(size_t bytes, size_t align, memrt__huge_t huge)
{
    void *mapping = map_placed(bytes, align, huge);
    if (mapping != NULL) {
        memrt__mapping_table_mark(mapping, MEMRT__USE_BLOCK);
    }
    return mapping;
}

void memrt__mapped_delete(void *mapping, size_t bytes)
{
    if (!memrt__os_unmap(mapping, bytes)) {
        memrt__os_discard(mapping, bytes);
    }
}

/// Huge page modes by address. The context of a mapped allocator points to a mode in the table;
/// NULL stands for the mode of the process.
static const memrt__huge_t modes[] = {
    [MEMRT__HUGE_OFF] = MEMRT__HUGE_OFF,
    [MEMRT__HUGE_ADVISE] = MEMRT__HUGE_ADVISE,
    [MEMRT__HUGE_LARGE] = MEMRT__HUGE_LARGE,
};

static memrt__huge_t get_huge_mode(const void *ctx)
{
    return ctx == NULL ? memrt__huge_of(MEMRT__INHERIT) : *(const memrt__huge_t *)ctx;
}

static bool round_up_to_pages(size_t size, size_t *pages)
{
    return memrt__size_round_up(size, memrt__os_page_size(), pages);
}

static void *mapped_alloc(void *ctx, size_t size, size_t align)
{
    size_t bytes;
    return round_up_to_pages(size, &bytes) ? memrt__mapped_new(bytes, align, get_huge_mode(ctx))
                                           : NULL;
}

static void mapped_free(void *ctx, void *ptr, size_t size, size_t align)
{
    (void)ctx;
    (void)align;
    size_t bytes;
    MEMRT__ASSERT((size_t)ptr % memrt__os_page_size() == 0);
    if (round_up_to_pages(size, &bytes)) {
        memrt__mapped_delete(ptr, bytes);
    }
}

/// Resize a mapping. NULL: the system refused, nothing changed.
static void *resize_mapping(void *ctx, void *ptr, size_t old_size, size_t new_size, bool may_move)
{
    size_t old_bytes, new_bytes;
    if (!round_up_to_pages(old_size, &old_bytes) || !round_up_to_pages(new_size, &new_bytes)) {
        return NULL;
    }
    if (old_bytes == new_bytes) {
        return ptr;
    }
    void *moved = memrt__os_remap(ptr, old_bytes, new_bytes, may_move);
    if (moved != NULL) {
        memrt__mapped_advise(moved, new_bytes, get_huge_mode(ctx));
    }
    return moved;
}

static void *mapped_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    bool may_move = align <= memrt__os_page_size();
    void *moved = resize_mapping(ctx, ptr, old_size, new_size, may_move);
    if (moved == NULL) {
        memrt_allocator_t self = memrt__mapped_allocator;
        self.ctx = ctx;
        return memrt__allocator_move(&self, &self, ptr, old_size, new_size, align);
    }
    return moved;
}

static int mapped_try_expand(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    (void)align;
    return resize_mapping(ctx, ptr, old_size, new_size, false) != NULL;
}

static size_t mapped_good_size(void *ctx, size_t size, size_t align)
{
    size_t bytes;
    (void)ctx;
    (void)align;
    return round_up_to_pages(size, &bytes) ? bytes : size;
}

static size_t mapped_usable_size(void *ctx, const void *ptr, size_t size, size_t align)
{
    (void)ptr;
    return mapped_good_size(ctx, size, align);
}

#define ALLOCATOR(context)                                                                         \
    {                                                                                              \
        .struct_size = sizeof(memrt_allocator_t),                                                  \
        .version = MEMRT_ALLOCATOR_VERSION,                                                        \
        .name = "mapped",                                                                          \
        .ctx = (context),                                                                          \
        .alloc = mapped_alloc,                                                                     \
        .alloc_zeroed = mapped_alloc, /* fresh pages are zero */                                   \
        .realloc = mapped_realloc,                                                                 \
        .free = mapped_free,                                                                       \
        .try_expand = mapped_try_expand,                                                           \
        .usable_size = mapped_usable_size,                                                         \
        .good_size = mapped_good_size,                                                             \
    }

const memrt_allocator_t memrt__mapped_allocator = ALLOCATOR(NULL);

static const memrt_allocator_t allocators_by_mode[] = {
    [MEMRT__HUGE_OFF] = ALLOCATOR((void *)&modes[MEMRT__HUGE_OFF]),
    [MEMRT__HUGE_ADVISE] = ALLOCATOR((void *)&modes[MEMRT__HUGE_ADVISE]),
    [MEMRT__HUGE_LARGE] = ALLOCATOR((void *)&modes[MEMRT__HUGE_LARGE]),
};

const memrt_allocator_t *memrt__mapped_with(size_t huge_pages)
{
    MEMRT__ASSERT(huge_pages == MEMRT__INHERIT || huge_pages <= MEMRT__HUGE_LARGE);
    return huge_pages == MEMRT__INHERIT ? &memrt__mapped_allocator
                                        : &allocators_by_mode[huge_pages];
}
