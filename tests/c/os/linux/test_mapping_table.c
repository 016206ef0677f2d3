#include "support/suite.h"

#include <sys/mman.h>

#include "runtime/os/mapping_table.h"
#include "runtime/os/os.h"
#include "support/crew.h"
#include "support/kernel.h"

enum { CREW = 8, ROUNDS = 200 };
#define MIB ((size_t)1 << 20)

/// Mapping at one address, as the table has it.
typedef struct found {
    uintptr_t address;
    size_t bytes, count;
    memrt__mapping_use_t use;
} found_t;

static void compare_mapping(void *context, uintptr_t address, size_t bytes,
                            memrt__mapping_use_t use)
{
    found_t *found = context;
    if (address == found->address) {
        found->bytes = bytes;
        found->use = use;
        found->count++;
    }
}

static found_t find_mapping(const void *address)
{
    found_t found = {.address = (uintptr_t)address};
    memrt__mapping_table_visit(compare_mapping, &found);
    REQUIRE(found.count <= 1);
    return found;
}

TEST(table_has_a_mapping_until_it_is_unmapped)
{
    size_t bytes = 3 * MIB + memrt__os_page_size();
    void *mapping = memrt__os_map(bytes, 0, 1);
    found_t found = find_mapping(mapping);
    ck_assert_uint_eq(found.bytes, bytes);
    ck_assert_int_eq(found.use, MEMRT__USE_RECORDS);
    ck_assert(memrt__os_unmap(mapping, bytes));
    ck_assert_uint_eq(find_mapping(mapping).count, 0);
}

TEST(mark_changes_the_use_of_a_mapping)
{
    void *mapping = memrt__os_map(2 * MIB, 0, 1);
    memrt__mapping_table_mark(mapping, MEMRT__USE_CACHED);
    ck_assert_int_eq(find_mapping(mapping).use, MEMRT__USE_CACHED);
    ck_assert_uint_eq(find_mapping(mapping).bytes, 2 * MIB);
    memrt__mapping_table_mark(mapping, MEMRT__USE_BLOCK);
    ck_assert_int_eq(find_mapping(mapping).use, MEMRT__USE_BLOCK);
    ck_assert(memrt__os_unmap(mapping, 2 * MIB));
}

TEST(remap_keeps_the_use_of_a_mapping)
{
    void *mapping = memrt__os_map(2 * MIB, 0, 1);
    memrt__mapping_table_mark(mapping, MEMRT__USE_BLOCK);
    void *smaller = memrt__os_remap(mapping, 2 * MIB, MIB, false);
    ck_assert_ptr_eq(smaller, mapping);
    ck_assert_uint_eq(find_mapping(mapping).bytes, MIB);
    void *moved = memrt__os_remap(mapping, MIB, 64 * MIB, true);
    if (moved != NULL) { /* mappings never move under ThreadSanitizer */
        ck_assert_int_eq(find_mapping(moved).use, MEMRT__USE_BLOCK);
        ck_assert_uint_eq(find_mapping(moved).bytes, 64 * MIB);
        ck_assert(moved == mapping || find_mapping(mapping).count == 0);
        ck_assert(memrt__os_unmap(moved, 64 * MIB));
    } else {
        ck_assert_uint_eq(find_mapping(mapping).bytes, MIB);
        ck_assert(memrt__os_unmap(mapping, MIB));
    }
}

TEST(mapping_keeps_whether_it_asks_for_huge_pages)
{
    char *mapping = memrt__os_map(4 * MIB, 0, MIB);
    ck_assert(!memrt__mapping_table_asks_huge(mapping));
    memrt__os_advise_huge(mapping, 4 * MIB, true);
    ck_assert(memrt__mapping_table_asks_huge(mapping));
    ck_assert_uint_eq(find_mapping(mapping).bytes, 4 * MIB);
    ck_assert_ptr_eq(memrt__os_remap(mapping, 4 * MIB, 3 * MIB, false), mapping);
    ck_assert(memrt__mapping_table_asks_huge(mapping));
    memrt__os_advise_huge(mapping, 3 * MIB, false);
    ck_assert(!memrt__mapping_table_asks_huge(mapping));
    memrt__mapping_table_ask_huge(mapping + MIB, true); /* not the start of a mapping */
    ck_assert(!memrt__mapping_table_asks_huge(mapping + MIB));
    ck_assert(memrt__os_unmap(mapping, 3 * MIB));
}

TEST(pages_of_the_pool_are_whole_pages_at_the_start)
{
    char *mapping = memrt__os_map(5 * MIB, 0, 2 * MIB);
    ck_assert_uint_eq(memrt__mapping_table_pool(mapping), 0);
    ck_assert(memrt__mapping_table_set_pool(mapping, 2 * MIB));
    memrt__mapping_table_mark(mapping, MEMRT__USE_BLOCK);
    ck_assert_uint_eq(memrt__mapping_table_pool(mapping), 4 * MIB);
    ck_assert_uint_eq(find_mapping(mapping).bytes, 5 * MIB);
    ck_assert(memrt__mapping_table_set_pool(mapping, 1024 * MIB));
    ck_assert_uint_eq(memrt__mapping_table_pool(mapping), 0);
    ck_assert(!memrt__mapping_table_set_pool(mapping + 4 * MIB, 2 * MIB));
    ck_assert_uint_eq(memrt__mapping_table_pool(mapping + 4 * MIB), 0);
    ck_assert(memrt__mapping_table_set_pool(mapping, 0));
    ck_assert_uint_eq(memrt__mapping_table_pool(mapping), 0);
    ck_assert(memrt__os_unmap(mapping, 5 * MIB));
}

TEST(two_starts_in_one_granule_leave_the_second_out)
{
    char *mapping = memrt__os_map(2 * MIB, 0, MIB);
    size_t page = memrt__os_page_size();
    memrt__mapping_table_add(mapping + page, page);
    ck_assert_uint_eq(find_mapping(mapping + page).count, 0);
    ck_assert_uint_eq(memrt__mapping_table_remove(mapping + page), 0);
    memrt__mapping_table_mark(mapping + page, MEMRT__USE_CACHED);
    ck_assert_uint_eq(find_mapping(mapping).bytes, 2 * MIB);
    ck_assert_int_eq(find_mapping(mapping).use, MEMRT__USE_RECORDS);
    ck_assert(memrt__os_unmap(mapping, 2 * MIB));
}

TEST(mapping_without_memory_for_the_table_is_left_out)
{
    void *far = (void *)((uintptr_t)1 << 45); /* in a part of the addresses without mappings */
    ck_assert_uint_eq(memrt__mapping_table_remove(far), 0);
    memrt__mapping_table_mark(far, MEMRT__USE_BLOCK);
    ck_assert(!memrt__mapping_table_set_pool(far, 2 * MIB));
    memrt__mapping_table_ask_huge(far, true);
    ck_assert(!memrt__mapping_table_asks_huge(far));
    ck_assert_uint_eq(memrt__mapping_table_pool(far), 0);
    kernel_refuse(KERNEL_MAP, 0, 1);
    memrt__mapping_table_add(far, MIB);
    kernel_obey();
    ck_assert_uint_eq(find_mapping(far).count, 0);
    memrt__mapping_table_add(far, MIB);
    ck_assert_uint_eq(find_mapping(far).bytes, MIB);
    ck_assert_uint_ne(memrt__mapping_table_remove(far), 0);
    ck_assert_uint_eq(find_mapping(far).count, 0);
}

TEST(table_keeps_a_mapping_that_the_system_does_not_unmap_or_move)
{
    void *mapping = memrt__os_map(2 * MIB, 0, 1);
    memrt__mapping_table_mark(mapping, MEMRT__USE_CACHED);
    kernel_refuse(KERNEL_UNMAP, 0, 1);
    ck_assert(!memrt__os_unmap(mapping, 2 * MIB));
    kernel_obey();
    ck_assert_int_eq(find_mapping(mapping).use, MEMRT__USE_CACHED);
    kernel_refuse(KERNEL_REMAP, 0, 1);
    ck_assert_ptr_null(memrt__os_remap(mapping, 2 * MIB, 4 * MIB, true));
    kernel_obey();
    ck_assert_int_eq(find_mapping(mapping).use, MEMRT__USE_CACHED);
    ck_assert_uint_eq(find_mapping(mapping).bytes, 2 * MIB);
    ck_assert(memrt__os_unmap(mapping, 2 * MIB));
}

TEST(addresses_above_48_bits_are_left_out)
{
    void *high = (void *)((uintptr_t)1 << 50);
    memrt__mapping_table_add(high, MIB);
    memrt__mapping_table_mark(high, MEMRT__USE_BLOCK);
    ck_assert_uint_eq(memrt__mapping_table_remove(high), 0);
    ck_assert_uint_eq(find_mapping(high).count, 0);
}

TEST(removal_of_an_unknown_mapping_restores_nothing)
{
    size_t page = memrt__os_page_size();
    void *mapping = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(mapping, MAP_FAILED);
    ck_assert_uint_eq(memrt__mapping_table_remove(mapping), 0);
    memrt__mapping_table_restore(0, mapping, page);
    ck_assert_uint_eq(find_mapping(mapping).count, 0);
    ck_assert_int_eq(munmap(mapping, page), 0);
}

static void map_and_unmap(size_t index, void *context)
{
    (void)context;
    for (size_t i = 0; i < ROUNDS; i++) {
        size_t bytes = (1 + (i + index) % 4) * MIB;
        void *mapping = memrt__os_map(bytes, 0, 1);
        REQUIRE(mapping != NULL);
        memrt__mapping_table_mark(mapping, MEMRT__USE_BLOCK);
        found_t found = find_mapping(mapping);
        REQUIRE(found.bytes == bytes && found.use == MEMRT__USE_BLOCK);
        REQUIRE(memrt__os_unmap(mapping, bytes));
    }
}

static void count_mapping(void *context, uintptr_t address, size_t bytes, memrt__mapping_use_t use)
{
    (void)address;
    (void)bytes;
    *(size_t *)context += use == MEMRT__USE_BLOCK;
}

TEST(threads_find_their_own_mappings)
{
    size_t before = 0, after = 0;
    memrt__mapping_table_visit(count_mapping, &before);
    crew_run(CREW, map_and_unmap, NULL);
    memrt__mapping_table_visit(count_mapping, &after);
    ck_assert_uint_eq(before, after);
}
