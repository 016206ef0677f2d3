#include "support/suite.h"

#include <string.h>

#include "runtime/alloc/allocator.h"
#include "runtime/alloc/mapped.h"
#include "runtime/config/options.h"
#include "runtime/os/os.h"
#include "support/advice.h"
#include "support/kernel.h"

static const memrt_allocator_t *const mapped = &memrt__mapped_allocator;

TEST(huge_page_advice_of_large_block_ends_with_free)
{
    memrt__options.huge_pages = MEMRT__HUGE_LARGE;
    size_t before = advice_count_huge();
    void *ptr = memrt__allocator_alloc(mapped, (size_t)8 << 20, 64, false);
    ck_assert_ptr_nonnull(ptr);
    if (advice_is_taken()) {
        ck_assert_uint_eq(advice_count_huge(), before + 1);
    }
    memset(ptr, 1, (size_t)8 << 20);
    memrt__allocator_free(mapped, ptr, (size_t)8 << 20, 64);
    ck_assert_uint_eq(advice_count_huge(), before);
}

TEST(resized_block_leaves_no_huge_page_advice_behind)
{
    size_t before = advice_count_huge();
    size_t sizes[] = {(size_t)1 << 20, (size_t)9 << 20, (size_t)30 << 20, (size_t)5 << 20, 4096};
    void *ptr = memrt__allocator_alloc(mapped, 100, 4096, false);
    size_t size = 100;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        ptr = memrt__allocator_realloc(mapped, ptr, size, sizes[i], 4096);
        ck_assert_ptr_nonnull(ptr);
        size = sizes[i];
        ck_assert_uint_le(advice_count_huge(), before + 1);
    }
    memrt__allocator_free(mapped, ptr, size, 4096);
    ck_assert_uint_eq(advice_count_huge(), before);
}

TEST(block_gets_no_huge_page_advice_when_option_is_off)
{
    size_t before = advice_count_huge();
    memrt__options.huge_pages = MEMRT__HUGE_OFF;
    void *ptr = memrt__allocator_alloc(mapped, (size_t)8 << 20, 64, false);
    ck_assert_uint_eq(advice_count_huge(), before);
    ptr = memrt__allocator_realloc(mapped, ptr, (size_t)8 << 20, (size_t)16 << 20, 64);
    ck_assert_uint_eq(advice_count_huge(), before);
    memrt__allocator_free(mapped, ptr, (size_t)16 << 20, 64);
}

#define MIB ((size_t)1 << 20)

/// Huge page mode, and the smallest block size that gets advice; SIZE_MAX: none.
typedef struct mode_from {
    memrt__huge_t mode;
    size_t from;
} mode_from_t;

static const mode_from_t modes[] = {
    {MEMRT__HUGE_OFF, SIZE_MAX}, {MEMRT__HUGE_ADVISE, 2 * MIB + 1}, {MEMRT__HUGE_LARGE, 4 * MIB}};

TEST_EACH(huge_page_mode_selects_advised_sizes_also_after_realloc, 3)
{
    const memrt_allocator_t *allocator = memrt__mapped_with(modes[index].mode);
    size_t sizes[] = {MIB, 2 * MIB, 2 * MIB + 1, 3 * MIB, 4 * MIB - 4096, 4 * MIB, 40 * MIB};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && advice_is_taken(); i++) {
        advice_t expected = sizes[i] >= modes[index].from ? ADVICE_HUGE : ADVICE_NONE;
        void *fresh = memrt__allocator_alloc(allocator, sizes[i], 64, false);
        ck_assert_int_eq(advice_at(fresh), expected);
        void *grown = memrt__allocator_alloc(allocator, 4096, 64, false);
        grown = memrt__allocator_realloc(allocator, grown, 4096, sizes[i], 64);
        ck_assert_int_eq(advice_at(grown), expected);
        memrt__allocator_free(allocator, fresh, sizes[i], 64);
        memrt__allocator_free(allocator, grown, sizes[i], 64);
    }
}

TEST(block_is_placed_so_that_a_huge_page_fits)
{
    size_t page = memrt__os_page_size(), bytes = 2 * MIB + page;
    for (size_t align = 64; align <= page; align *= page / 64) {
        char *mapping = memrt__mapped_new(bytes, align, MEMRT__HUGE_ADVISE);
        ck_assert_ptr_nonnull(mapping);
        size_t lead = align == page ? page : 0;
        ck_assert_uint_eq((uintptr_t)(mapping + lead) % (2 * MIB), 0);
        ck_assert(memrt__os_unmap(mapping, bytes));
    }
}

TEST(huge_page_advice_can_be_switched_on_and_off)
{
    void *mapping = memrt__mapped_new(8 * MIB, 64, MEMRT__HUGE_OFF);
    ck_assert_ptr_nonnull(mapping);
    for (int round = 0; round < 2 && advice_is_taken(); round++) {
        memrt__mapped_advise_anew(mapping, 8 * MIB, MEMRT__HUGE_ADVISE);
        ck_assert_int_eq(advice_at(mapping), ADVICE_HUGE);
        memrt__mapped_advise_anew(mapping, 8 * MIB, MEMRT__HUGE_OFF);
        ck_assert_int_eq(advice_at(mapping), ADVICE_SMALL);
    }
    ck_assert(memrt__os_unmap(mapping, 8 * MIB));
}

TEST(zeroed_pages_use_little_memory_before_first_touch)
{
    size_t size = (size_t)512 << 20;
    size_t before = memrt__os_resident();
    void *ptr = memrt__allocator_alloc(mapped, size, 64, true);
    ck_assert_ptr_nonnull(ptr);
    ck_assert_uint_lt(memrt__os_resident(), before + ((size_t)64 << 20));
    memrt__allocator_free(mapped, ptr, size, 64);
}

TEST(block_with_failed_unmap_still_returns_pages)
{
    size_t size = (size_t)64 << 20;
    void *ptr = memrt__allocator_alloc(mapped, size, 64, false);
    ck_assert_ptr_nonnull(ptr);
    memset(ptr, 1, size);
    size_t held = memrt__os_resident();
    kernel_refuse(KERNEL_UNMAP, 0, 1);
    memrt__allocator_free(mapped, ptr, size, 64);
    ck_assert_uint_lt(memrt__os_resident() + size / 2, held);
    kernel_obey();
    ck_assert(memrt__os_unmap(ptr, size));
}

TEST(block_moved_after_failed_mremap_keeps_huge_page_mode)
{
    memrt__options.huge_pages = MEMRT__HUGE_LARGE;
    const memrt_allocator_t *small_pages = memrt__mapped_with(MEMRT__HUGE_OFF);
    void *ptr = memrt__allocator_alloc(small_pages, 4096, 64, false);
    kernel_refuse(KERNEL_REMAP, 0, SIZE_MAX);
    ptr = memrt__allocator_realloc(small_pages, ptr, 4096, 8 * MIB, 64);
    ck_assert_ptr_nonnull(ptr);
    ck_assert_int_ne(advice_at(ptr), ADVICE_HUGE);
    memrt__allocator_free(small_pages, ptr, 8 * MIB, 64);
}

TEST(inherit_mode_returns_default_mapped_allocator)
{
    ck_assert_ptr_eq(memrt__mapped_with(MEMRT__INHERIT), mapped);
}

TEST(freed_block_returns_resident_memory)
{
    size_t size = (size_t)64 << 20;
    void *ptr = memrt__allocator_alloc(mapped, size, 64, false);
    ck_assert_ptr_nonnull(ptr);
    memset(ptr, 1, size);
    size_t held = memrt__os_resident();
    memrt__allocator_free(mapped, ptr, size, 64);
    ck_assert_uint_lt(memrt__os_resident() + size / 2, held);
}
