#include "support/suite.h"

#include <string.h>

#include "conformance/pattern.h"
#include "support/books.h"
#include "support/crew.h"

TEST(calloc_takes_any_split_of_the_product)
{
    books_t before = books_now();
    unsigned char *data = api->block_calloc(NULL, 3, 7);
    ck_assert(pattern_is_zero(data, 21));
    ck_assert_uint_eq(stats_of(NULL).live, before.stats.live + 21);
    api->block_free(NULL, data, 21);
    data = api->block_calloc(NULL, 21, 1);
    ck_assert(pattern_is_zero(data, 21));
    api->block_free(NULL, data, 21);
    data = api->block_calloc(NULL, 0, SIZE_MAX);
    ck_assert_ptr_nonnull(data);
    api->block_free(NULL, data, 0);
}

TEST(calloc_of_a_product_that_overflows_is_null_and_counted_as_failed)
{
    books_t before = books_now();
    ck_assert_ptr_null(api->block_calloc(NULL, SIZE_MAX / 2, 4));
    ck_assert_ptr_null(api->block_calloc(NULL, 4, SIZE_MAX / 2));
    ck_assert_ptr_null(api->block_calloc(NULL, SIZE_MAX, 1));
    ck_assert_ptr_null(api->block_calloc(NULL, SIZE_MAX, SIZE_MAX));  /* 1 where it wraps around */
    ck_assert_ptr_null(api->block_calloc(NULL, SIZE_MAX / 2 + 9, 2)); /* 16 */
    books_expect_unchanged(&before);
    ck_assert_uint_eq(stats_of(NULL).failed, before.stats.failed + 5);
}

TEST(the_size_that_free_is_given_is_not_believed)
{
    static const size_t wrong[] = {0, 1, 99, 101, (size_t)1 << 40, SIZE_MAX};
    books_t before = books_now();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        void *small = api->block_alloc(NULL, 100), *large = api->block_alloc(NULL, 3000000);
        api->block_free(NULL, small, wrong[i]);
        api->block_free(NULL, large, wrong[i]);
    }
    books_expect_no_leak(&before);
    ck_assert_uint_eq(stats_of(NULL).free, before.stats.free + 12);
}

TEST(free_of_null_does_nothing)
{
    books_t before = books_now();
    api->block_free(NULL, NULL, 0);
    api->block_free(NULL, NULL, 1000);
    books_expect_unchanged(&before);
}

TEST(realloc_of_null_allocates)
{
    void *data = api->block_realloc(NULL, NULL, 100);
    ck_assert_ptr_nonnull(data);
    memset(data, 1, 100);
    api->block_free(NULL, data, 100);
}

TEST(realloc_to_zero_keeps_a_block_with_an_address)
{
    void *data = api->block_realloc(NULL, api->block_alloc(NULL, 100), 0);
    ck_assert_ptr_nonnull(data);
    data = api->block_realloc(NULL, data, 10);
    ck_assert_ptr_nonnull(data);
    api->block_free(NULL, data, 0);
}

TEST(a_block_becomes_a_meminfo_when_one_asks_and_is_counted_once)
{
    void *data = api->block_alloc(NULL, 100);
    memrt_stats_t before = stats_of(NULL);
    memrt_meminfo_t *one, *other;
    ck_assert_int_eq(api->block_meminfo(data, &one), MEMRT_OK);
    ck_assert_int_eq(api->block_meminfo(data, &other), MEMRT_OK);
    ck_assert_ptr_eq(one, other);
    ck_assert_uint_eq(api->refcount(one), 3);
    ck_assert_uint_eq(stats_of(NULL).mi_alloc, before.mi_alloc + 1);
    api->release(one);
    api->block_free(NULL, data, 0);
    ck_assert_uint_eq(stats_of(NULL).mi_free, before.mi_free);
    ck_assert_uint_eq(api->size(other), 100);
    api->release(other);
    ck_assert_uint_eq(stats_of(NULL).mi_free, before.mi_free + 1);
}

TEST(a_meminfo_with_inline_data_is_found_from_its_first_byte)
{
    memrt_meminfo_t *mi = api->allocate(10), *same;
    ck_assert_int_eq(api->block_meminfo(api->get_data(mi), &same), MEMRT_OK);
    ck_assert_ptr_eq(same, mi);
    api->release(same);
    api->release(mi);
}

TEST_EACH(realloc_of_a_block_that_others_hold_leaves_theirs_and_copies, 2)
{
    int was = api->tracking(index);
    memrt_policy_t *policy;
    memrt_policy_options_t settings = {.struct_size = sizeof(settings), .alignment = 65536};
    ck_assert_int_eq(api->policy_new(&settings, &policy), MEMRT_OK);
    void *data = api->block_alloc(policy, 100);
    memrt_meminfo_t *held;
    pattern_write(data, 100, 7);
    ck_assert_int_eq(api->block_meminfo(data, &held), MEMRT_OK);
    void *own = api->block_realloc(policy, data, 200);
    ck_assert_ptr_ne(own, data);
    ck_assert_uint_eq((uintptr_t)own % 65536, 0);
    ck_assert_ptr_eq(api->get_data(held), data);
    ck_assert(pattern_holds(data, 100, 7));
    ck_assert(pattern_holds(own, 100, 7));
    memset(own, 0, 200);
    ck_assert(pattern_holds(data, 100, 7));
    ck_assert_uint_eq(api->refcount(held), 1);
    api->release(held);
    api->block_free(NULL, own, 0);
    api->policy_release(policy);
    api->tracking(was);
}

TEST(realloc_of_a_shared_block_that_fails_changes_nothing_for_anybody)
{
    void *data = api->block_alloc(NULL, 100);
    memrt_meminfo_t *held;
    pattern_write(data, 100, 7);
    ck_assert_int_eq(api->block_meminfo(data, &held), MEMRT_OK);
    books_t before = books_now();
    ck_assert_ptr_null(api->block_realloc(NULL, data, SIZE_MAX));
    books_expect_unchanged(&before);
    ck_assert_uint_eq(api->refcount(held), 2);
    ck_assert(pattern_holds(data, 100, 7));
    api->release(held);
    api->block_free(NULL, data, 0);
}

static void promote(size_t index, void *context)
{
    (void)index;
    memrt_meminfo_t *mi;
    REQUIRE(api->block_meminfo(context, &mi) == MEMRT_OK);
    api->release(mi);
}

TEST(threads_that_ask_for_the_meminfo_of_one_block_count_it_once)
{
    for (int round = 0; round < 200; round++) {
        void *data = api->block_alloc(NULL, 10);
        uint64_t before = stats_of(NULL).mi_alloc;
        crew_run(4, promote, data);
        ck_assert_uint_eq(stats_of(NULL).mi_alloc, before + 1);
        api->block_free(NULL, data, 0);
    }
}
