/// Tests of the uncached allocator.

#include "support/suite.h"

#include <stdlib.h>

#include "runtime/alloc/allocator.h"
#include "runtime/os/os.h"

/// Return true for page-aligned blocks. Large blocks are mappings of their own. Small blocks are
/// never page-aligned here, because malloc's header precedes them.
static bool is_page_aligned(const void *ptr)
{
    return (uintptr_t)ptr % memrt__os_page_size() == 0;
}

TEST(small_uncached_blocks_come_from_the_c_library)
{
    void *ptr = memrt__allocator_alloc(&memrt__uncached_allocator, MEMRT__LARGE - 1, 64, false);
    ck_assert_ptr_nonnull(ptr);
    free(ptr);
}

TEST(large_uncached_blocks_are_separate_mappings)
{
    void *ptr = memrt__allocator_alloc(&memrt__uncached_allocator, MEMRT__LARGE, 64, false);
    ck_assert_ptr_nonnull(ptr);
    ck_assert(is_page_aligned(ptr));
    memrt__allocator_free(&memrt__mapped_allocator, ptr, MEMRT__LARGE, 64);
}

TEST(resize_across_the_threshold_moves_to_pages_and_back)
{
    void *ptr = memrt__allocator_alloc(&memrt__uncached_allocator, 1000, 64, false);
    ptr = memrt__allocator_realloc(&memrt__uncached_allocator, ptr, 1000, MEMRT__LARGE, 64);
    ck_assert_ptr_nonnull(ptr);
    ck_assert(is_page_aligned(ptr));
    ptr = memrt__allocator_realloc(&memrt__uncached_allocator, ptr, MEMRT__LARGE, 1000, 64);
    ck_assert_ptr_nonnull(ptr);
    free(ptr);
}
