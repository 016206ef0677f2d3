#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/pattern.h"
#include "runtime/alloc/allocator.h"
#include "support/failing.h"
#include "support/gate.h"

static memrt_allocator_t least(void)
{
    memrt_allocator_t allocator = memrt__system_allocator;
    allocator.alloc_zeroed = NULL;
    allocator.realloc = NULL;
    return allocator;
}

TEST(a_table_is_copied_with_a_name)
{
    memrt_allocator_t copy, nameless = memrt__system_allocator;
    nameless.name = NULL;
    ck_assert_int_eq(memrt__allocator_copy(&nameless, &copy), MEMRT_OK);
    ck_assert_str_eq(copy.name, "unnamed");
    ck_assert_ptr_eq(copy.alloc, nameless.alloc);
}

static void refuse(const memrt_allocator_t *table)
{
    memrt_allocator_t copy, untouched;
    memset(&copy, 0xAB, sizeof(copy));
    memcpy(&untouched, &copy, sizeof(copy));
    ck_assert_int_eq(memrt__allocator_copy(table, &copy), MEMRT_EINVAL);
    ck_assert_mem_eq(&copy, &untouched, sizeof(copy));
}

TEST(a_table_of_another_version_or_without_alloc_or_free_is_refused)
{
    memrt_allocator_t table = memrt__system_allocator;
    table.version = MEMRT_ALLOCATOR_VERSION + 1;
    refuse(&table);
    table = memrt__system_allocator;
    table.struct_size = 4;
    refuse(&table);
    table = memrt__system_allocator;
    table.struct_size = offsetof(memrt_allocator_t, free); /* ends before free */
    refuse(&table);
    table = memrt__system_allocator;
    table.alloc = NULL;
    refuse(&table);
    table = memrt__system_allocator;
    table.free = NULL;
    refuse(&table);
}

TEST(a_shorter_table_is_read_no_further_than_it_reaches)
{
    memrt_allocator_t copy, table = memrt__system_allocator;
    table.struct_size = offsetof(memrt_allocator_t, release_unused);
    memset(&table.release_unused, 0xEE, sizeof(table) - table.struct_size);
    ck_assert_int_eq(memrt__allocator_copy(&table, &copy), MEMRT_OK);
    ck_assert(copy.release_unused == NULL);
    ck_assert(copy.usage == NULL);
    ck_assert(copy.destroy == NULL);
}

TEST(a_longer_table_of_a_later_version_is_read_as_far_as_it_is_known)
{
    struct {
        memrt_allocator_t known;
        void *later;
    } table = {memrt__system_allocator, &table};
    table.known.struct_size = sizeof(table);
    memrt_allocator_t copy;
    ck_assert_int_eq(memrt__allocator_copy(&table.known, &copy), MEMRT_OK);
    ck_assert_uint_eq(copy.struct_size, sizeof(copy));
    ck_assert(copy.alloc == memrt__system_allocator.alloc);
}

TEST(functions_that_an_allocator_lacks_are_made_of_those_it_has)
{
    memrt_allocator_t allocator = least();
    void *ptr = memrt__allocator_alloc(&allocator, 1000, 64, true);
    ck_assert_ptr_nonnull(ptr);
    ck_assert(pattern_is_zero(ptr, 1000));
    pattern_write(ptr, 1000, 1);
    ptr = memrt__allocator_realloc(&allocator, ptr, 1000, 5000, 64);
    ck_assert(pattern_holds(ptr, 1000, 1));
    memrt__allocator_free(&allocator, ptr, 5000, 64);
    ck_assert_uint_eq(memrt__allocator_cached(&allocator), 0);
    ck_assert_uint_eq(memrt__allocator_release_unused(&allocator), 0);
    memrt__allocator_destroy(&allocator);
}

TEST(a_move_without_memory_keeps_the_old_block)
{
    memrt_allocator_t failing, gate;
    ck_assert_int_eq(failing_new(memrt__default_allocator(), &failing), MEMRT_OK);
    ck_assert_int_eq(gate_new(&failing, &gate), MEMRT_OK);
    void *ptr = memrt__allocator_alloc(&gate, 100, 64, false);
    ck_assert_ptr_nonnull(ptr);
    pattern_write(ptr, 100, 8);
    failing_at(&failing, 1);
    ck_assert_ptr_null(memrt__allocator_realloc(&gate, ptr, 100, 5000, 64));
    ck_assert(pattern_holds(ptr, 100, 8));
    memrt__allocator_free(&gate, ptr, 100, 64);
    memrt__allocator_destroy(&gate);
}
