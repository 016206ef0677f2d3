#include "support/suite.h"

#include <stdlib.h>

#include "runtime/alloc/allocator.h"
#include "runtime/base/os.h"

/// A large block is pages of its own, which a small one never is here: it follows malloc's words.
static bool is_page_aligned(const void *ptr)
{
    return (uintptr_t)ptr % memrt__os_page_size() == 0;
}

TEST(small_blocks_come_from_the_c_library)
{
    void *ptr = memrt__allocator_alloc(&memrt__plain_allocator, MEMRT__LARGE - 1, 64, false);
    ck_assert_ptr_nonnull(ptr);
    free(ptr);
}

TEST(large_blocks_are_pages_of_their_own)
{
    void *ptr = memrt__allocator_alloc(&memrt__plain_allocator, MEMRT__LARGE, 64, false);
    ck_assert_ptr_nonnull(ptr);
    ck_assert(is_page_aligned(ptr));
    memrt__allocator_free(&memrt__mapped_allocator, ptr, MEMRT__LARGE, 64);
}

TEST(a_block_that_grows_over_the_threshold_moves_to_pages_and_back)
{
    void *ptr = memrt__allocator_alloc(&memrt__plain_allocator, 1000, 64, false);
    ptr = memrt__allocator_realloc(&memrt__plain_allocator, ptr, 1000, MEMRT__LARGE, 64);
    ck_assert_ptr_nonnull(ptr);
    ck_assert(is_page_aligned(ptr));
    ptr = memrt__allocator_realloc(&memrt__plain_allocator, ptr, MEMRT__LARGE, 1000, 64);
    ck_assert_ptr_nonnull(ptr);
    free(ptr);
}
