#include "support/suite.h"

#include <stdlib.h>

#include "conformance/pattern.h"
#include "runtime/alloc/allocator.h"

/* That these are the C library's own blocks shows in that the C library may free them. */
TEST(blocks_are_those_of_the_c_library)
{
    static const size_t aligns[] = {1, 16, 64, 4096};
    for (size_t i = 0; i < 4; i++) {
        void *ptr = memrt__allocator_alloc(&memrt__system_allocator, 100, aligns[i], false);
        ck_assert_ptr_nonnull(ptr);
        free(ptr);
    }
}

TEST(realloc_of_an_aligned_block_stays_aligned_through_many_moves)
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
