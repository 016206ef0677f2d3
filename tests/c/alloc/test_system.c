#include "support/suite.h"

#include <stdlib.h>

#include "conformance/pattern.h"
#include "runtime/alloc/allocator.h"

/* The C library can free the blocks, so they are blocks of the C library. */
TEST(system_blocks_can_be_freed_by_the_c_library)
{
    static const size_t aligns[] = {1, 16, 64, 4096};
    for (size_t i = 0; i < 4; i++) {
        void *ptr = memrt__allocator_alloc(&memrt__system_allocator, 100, aligns[i], false);
        ck_assert_ptr_nonnull(ptr);
        free(ptr);
    }
}

TEST(aligned_system_block_stays_aligned_through_reallocs)
{
    size_t size = 1;
    unsigned char *ptr = memrt__allocator_alloc(&memrt__system_allocator, size, 1024, false);
    ck_assert_ptr_nonnull(ptr);
    pattern_write(ptr, size, 5);
    while (size < 100000) {
        size_t next = size * 3 / 2 + 1;
        ptr = memrt__allocator_realloc(&memrt__system_allocator, ptr, size, next, 1024);
        ck_assert_ptr_nonnull(ptr);
        ck_assert_uint_eq((uintptr_t)ptr % 1024, 0);
        ck_assert(pattern_holds(ptr, size, 5));
        size = next;
        pattern_write(ptr, size, 5);
    }
    memrt__allocator_free(&memrt__system_allocator, ptr, size, 1024);
}
