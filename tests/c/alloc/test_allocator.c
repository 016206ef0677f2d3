#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/pattern.h"
#include "runtime/alloc/allocator.h"
#include "support/allocators/failing.h"
#include "support/allocators/gate.h"

static memrt_allocator_t create_minimal_allocator(void)
{
    memrt_allocator_t allocator = memrt__system_allocator;
    allocator.alloc_zeroed = NULL;
    allocator.realloc = NULL;
    return allocator;
}

TEST(allocator_table_without_name_is_copied_as_unnamed)
{
    memrt_allocator_t copy, nameless = memrt__system_allocator;
    nameless.name = NULL;
    ck_assert_int_eq(memrt__allocator_copy(&nameless, &copy), MEMRT_OK);
    ck_assert_str_eq(copy.name, "unnamed");
    ck_assert_ptr_eq(copy.alloc, nameless.alloc);
}

static void expect_copy_refused(const memrt_allocator_t *table)
{
    memrt_allocator_t copy, untouched;
    memset(&copy, 0xAB, sizeof(copy));
    memcpy(&untouched, &copy, sizeof(copy));
    ck_assert_int_eq(memrt__allocator_copy(table, &copy), MEMRT_EINVAL);
    ck_assert_mem_eq(&copy, &untouched, sizeof(copy));
}

TEST(allocator_table_of_unknown_version_or_incomplete_is_refused)
{
    memrt_allocator_t table = memrt__system_allocator;
    table.version = MEMRT_ALLOCATOR_VERSION + 1;
    expect_copy_refused(&table);
    table = memrt__system_allocator;
    table.struct_size = 4;
    expect_copy_refused(&table);
    table = memrt__system_allocator;
    table.struct_size = offsetof(memrt_allocator_t, free); /* ends before free */
    expect_copy_refused(&table);
    table = memrt__system_allocator;
    table.alloc = NULL;
    expect_copy_refused(&table);
    table = memrt__system_allocator;
    table.free = NULL;
    expect_copy_refused(&table);
}

TEST(short_allocator_table_is_read_up_to_struct_size)
{
    memrt_allocator_t copy, table = memrt__system_allocator;
    table.struct_size = offsetof(memrt_allocator_t, release_unused);
    memset(&table.release_unused, 0xEE, sizeof(table) - table.struct_size);
    ck_assert_int_eq(memrt__allocator_copy(&table, &copy), MEMRT_OK);
    ck_assert(copy.release_unused == NULL);
    ck_assert(copy.usage == NULL);
    ck_assert(copy.destroy == NULL);
}

TEST(longer_allocator_table_is_copied_up_to_known_fields)
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

TEST(missing_optional_allocator_functions_have_fallbacks)
{
    memrt_allocator_t allocator = create_minimal_allocator();
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

static int expand_to_2000(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    (void)ctx, (void)ptr, (void)old_size, (void)align;
    return new_size <= 2000;
}

TEST(realloc_without_a_function_grows_in_place_before_it_copies)
{
    memrt_allocator_t allocator = create_minimal_allocator();
    allocator.try_expand = expand_to_2000;
    void *ptr = memrt__allocator_alloc(&allocator, 4000, 64, false);
    ck_assert_ptr_nonnull(ptr);
    ck_assert_ptr_eq(memrt__allocator_realloc(&allocator, ptr, 1000, 2000, 64), ptr);
    void *moved = memrt__allocator_realloc(&allocator, ptr, 2000, 3000, 64);
    ck_assert_ptr_ne(moved, ptr);
    memrt__allocator_free(&allocator, moved, 3000, 64);
}

TEST(failed_realloc_by_copy_keeps_old_block)
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
