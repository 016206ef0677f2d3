#include "support/suite.h"

#include "runtime/alloc/allocator.h"
#include "runtime/alloc/heap/pages/segment.h"
#include "support/child.h"

enum { MOST = 512 };

/// Return the use of the range with an address. 0: no range has the address.
static uint64_t find_use(const void *address)
{
    static memrt_mapping_t all[MOST];
    uint64_t at = (uint64_t)(uintptr_t)address, use = 0;
    size_t count = MOST;
    for (size_t i = 0; i < MOST; i++) {
        all[i].struct_size = sizeof(*all);
    }
    REQUIRE(api->mappings(all, &count) == MEMRT_OK && count <= MOST);
    for (size_t i = 0; i < count; i++) {
        if (at - all[i].address < all[i].bytes) {
            REQUIRE(use == 0); /* ranges do not overlap */
            use = all[i].use;
        }
    }
    return use;
}

TEST(large_block_is_listed_in_use_and_then_cached)
{
    size_t size = 8 * MEMRT__LARGE;
    char *block = api->block_alloc(NULL, size);
    REQUIRE(block != NULL);
    ck_assert_uint_eq(find_use(block), MEMRT_MAPPING_BLOCK);
    ck_assert_uint_eq(find_use(block + size - 1), MEMRT_MAPPING_BLOCK);
    api->block_free(NULL, block, size);
    uint64_t use = find_use(block); /* without a cache, the mapping is gone */
    bool checking =
        (api->features & MEMRT_FEATURE_CHECKING) != 0; /* the quarantine has the block */
    ck_assert(use == MEMRT_MAPPING_CACHED || use == 0 || checking);
    char *again = api->block_alloc(NULL, size);
    REQUIRE(again != NULL);
    ck_assert_uint_eq(find_use(again), MEMRT_MAPPING_BLOCK);
    api->block_free(NULL, again, size);
}

TEST(small_block_lies_in_spans_and_their_table_in_records)
{
    void *block = api->block_alloc(NULL, 4000);
    REQUIRE(block != NULL);
    uint64_t use = find_use(block); /* with the system's allocator, malloc has the block */
    ck_assert(use == MEMRT_MAPPING_SPANS || use == 0);
    if (use != 0) {
        ck_assert_uint_eq(find_use(memrt__segment_of(block)), MEMRT_MAPPING_RECORDS);
    }
    api->block_free(NULL, block, 4000);
}

TEST(memory_of_the_program_is_not_listed)
{
    static char variable;
    char local = 0;
    ck_assert_uint_eq(find_use(&variable), 0);
    ck_assert_uint_eq(find_use(&local), 0);
    ck_assert_uint_eq(find_use(NULL), 0);
}

static void find_inherited_block(void *block)
{
    REQUIRE(find_use(block) == MEMRT_MAPPING_BLOCK);
}

TEST(forked_child_lists_inherited_mappings)
{
    size_t size = 2 * MEMRT__LARGE;
    void *block = api->block_alloc(NULL, size);
    REQUIRE(block != NULL);
    child_expect_success(find_inherited_block, block);
    api->block_free(NULL, block, size);
}

TEST(mappings_fills_the_elements_that_exist)
{
    memrt_mapping_t all[2] = {{.struct_size = sizeof(*all)}, {.struct_size = 1}};
    size_t size = 2 * MEMRT__LARGE, count = 0;
    void *block = api->block_alloc(NULL, size);
    REQUIRE(block != NULL);
    ck_assert_int_eq(api->mappings(NULL, &count), MEMRT_OK);
    ck_assert_uint_ge(count, 1);
    count = 1;
    ck_assert_int_eq(api->mappings(all, &count), MEMRT_OK);
    ck_assert_uint_ne(all[0].bytes, 0);
    count = 2;
    ck_assert_int_eq(api->mappings(all, &count), MEMRT_EINVAL);
    ck_assert_int_eq(api->mappings(NULL, &count), MEMRT_EINVAL);
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(api->mappings(all, NULL), MEMRT_EINVAL);
    api->block_free(NULL, block, size);
}
