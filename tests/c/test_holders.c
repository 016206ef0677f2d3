#include "support/suite.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/failure.h"
#include "runtime/base/options.h"
#include "runtime/base/os.h"
#include "runtime/debug/holders.h"
#include "support/crew.h"

#define REFERENCE MEMRT_HOLDER_REFERENCE
#define EXPORT MEMRT_HOLDER_EXPORT
#define MANY 1000

static void hold(memrt_meminfo_t *mi, memrt_holder_kind_t kind, const char *name)
{
    ck_assert_int_eq(api->acquire_as(mi, kind, name), MEMRT_OK);
}

static size_t count_holders(const memrt_meminfo_t *mi)
{
    return api->holders(mi, NULL, 0, 0);
}

static memrt_holder_t row_of(const memrt_meminfo_t *mi, size_t index)
{
    memrt_holder_t rows[4];
    ck_assert_uint_gt(api->holders(mi, rows, sizeof(rows[0]), 4), index);
    return rows[index];
}

/// What is noted of a key that no MemInfo has any more.
static size_t left_over(const memrt_meminfo_t *mi)
{
    return memrt__holders_list((uintptr_t)mi, NULL, 0, 0);
}

TEST(a_reference_under_a_name_is_a_reference_and_a_row)
{
    memrt_meminfo_t *mi = api->allocate(100);
    ck_assert_uint_eq(count_holders(mi), 0);
    hold(mi, REFERENCE, "loader");
    ck_assert_uint_eq(api->refcount(mi), 2);
    memrt_holder_t row = row_of(mi, 0);
    ck_assert_str_eq(row.name, "loader");
    ck_assert_uint_eq(row.count, 1);
    ck_assert_uint_eq(row.kind, REFERENCE);
    ck_assert_uint_eq(row.thread, memrt__os_thread_id());
    ck_assert_uint_lt(row.age_ns, UINT64_C(60000000000));
    api->release_as(mi, REFERENCE, "loader");
    ck_assert_uint_eq(api->refcount(mi), 1);
    ck_assert_uint_eq(count_holders(mi), 0);
    api->release(mi);
}

TEST(a_row_counts_the_references_of_one_kind_and_name)
{
    memrt_meminfo_t *mi = api->allocate(100);
    hold(mi, REFERENCE, "a");
    hold(mi, EXPORT, "a");
    hold(mi, REFERENCE, "b");
    hold(mi, REFERENCE, "a");
    ck_assert_uint_eq(count_holders(mi), 3);
    ck_assert_uint_eq(row_of(mi, 0).count, 2);
    ck_assert_uint_eq(row_of(mi, 1).kind, EXPORT);
    ck_assert_str_eq(row_of(mi, 2).name, "b");
    api->release_as(mi, REFERENCE, "a");
    ck_assert_uint_eq(row_of(mi, 0).count, 1);
    api->release_as(mi, REFERENCE, "a");
    ck_assert_uint_eq(row_of(mi, 0).kind, EXPORT);
    api->release_as(mi, EXPORT, "a");
    api->release_as(mi, REFERENCE, "b");
    ck_assert_uint_eq(count_holders(mi), 0);
    api->release(mi);
}

TEST(an_empty_a_long_and_no_name_and_an_unknown_kind_are_refused)
{
    memrt_meminfo_t *mi = api->allocate(100);
    char name[MEMRT_NAME_MAX + 2];
    memset(name, 'n', sizeof(name));
    name[MEMRT_NAME_MAX + 1] = '\0';
    ck_assert_int_eq(api->acquire_as(mi, REFERENCE, name), MEMRT_EINVAL);
    ck_assert_int_eq(api->acquire_as(mi, REFERENCE, ""), MEMRT_EINVAL);
    ck_assert_int_eq(api->acquire_as(mi, REFERENCE, NULL), MEMRT_EINVAL);
    ck_assert_int_eq(api->acquire_as(mi, (memrt_holder_kind_t)0, "a"), MEMRT_EINVAL);
    ck_assert_int_eq(api->acquire_as(mi, (memrt_holder_kind_t)3, "a"), MEMRT_EINVAL);
    ck_assert_uint_eq(api->refcount(mi), 1);
    name[MEMRT_NAME_MAX] = '\0';
    hold(mi, REFERENCE, name);
    ck_assert_str_eq(row_of(mi, 0).name, name);
    api->release_as(mi, REFERENCE, name);
    api->release(mi);
}

TEST(nothing_is_held_when_there_is_no_memory_for_the_name)
{
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = 1, .every = 1};
    memrt_meminfo_t *mi = api->allocate(100);
    ck_assert_int_eq(api->fail_allocations(&plan), MEMRT_OK);
    ck_assert_int_eq(api->acquire_as(mi, REFERENCE, "a"), MEMRT_ENOMEM);
    ck_assert_int_eq(api->fail_allocations(NULL), MEMRT_OK);
    ck_assert_uint_eq(api->refcount(mi), 1);
    ck_assert_uint_eq(count_holders(mi), 0);
    api->release(mi);
}

TEST(rows_are_written_as_far_as_there_is_room_for_rows_and_in_them)
{
    char rows[2 * sizeof(memrt_holder_t)];
    size_t count;
    memrt_meminfo_t *mi = api->allocate(100);
    hold(mi, REFERENCE, "a");
    hold(mi, REFERENCE, "b");
    memset(rows, 'x', sizeof(rows));
    ck_assert_uint_eq(api->holders(mi, (memrt_holder_t *)(void *)rows, sizeof(count), 1), 2);
    memcpy(&count, rows, sizeof(count));
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(rows[sizeof(count)], 'x');
    memset(rows, 'x', sizeof(rows));
    size_t larger = sizeof(memrt_holder_t) + 8; /* of a caller that knows more than the library */
    ck_assert_uint_eq(api->holders(mi, (memrt_holder_t *)(void *)rows, larger, 1), 2);
    ck_assert_int_eq(rows[sizeof(memrt_holder_t)], 'x');
    api->release_as(mi, REFERENCE, "a");
    api->release_as(mi, REFERENCE, "b");
    api->release(mi);
}

TEST(what_is_left_noted_goes_with_the_meminfo)
{
    memrt_meminfo_t *mi = api->allocate(100);
    hold(mi, REFERENCE, "a");
    hold(mi, REFERENCE, "b");
    api->release(mi);
    api->release(mi);
    ck_assert_uint_eq(count_holders(mi), 2); /* the references are plain from then on */
    api->release(mi);
    ck_assert_uint_eq(left_over(mi), 0);
}

TEST(it_goes_too_with_a_tiny_an_adopted_and_a_resizable_one)
{
    static char foreign[8];
    memrt_meminfo_t *mis[3];
    void *tiny = api->block_alloc(NULL, 8);
    ck_assert_int_eq(api->block_meminfo(tiny, &mis[0]), MEMRT_OK);
    ck_assert_int_eq(api->meminfo_adopt(foreign, 8, NULL, &mis[1]), MEMRT_OK);
    ck_assert_int_eq(api->resizable_new(8, NULL, &mis[2]), MEMRT_OK);
    for (size_t i = 0; i < 3; i++) {
        hold(mis[i], REFERENCE, "a");
        api->release(mis[i]);
    }
    api->block_free(NULL, tiny, 8);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(count_holders(mis[i]), 1);
        api->release(mis[i]);
        ck_assert_uint_eq(left_over(mis[i]), 0);
    }
}

TEST_EACH(what_is_left_noted_goes_when_its_block_is_resized, 2)
{
    memrt_meminfo_t *mi;
    void *data = api->block_alloc(NULL, 100);
    ck_assert_int_eq(api->block_meminfo(data, &mi), MEMRT_OK);
    hold(mi, REFERENCE, "a");
    api->release(mi);
    api->release(mi);
    data = api->block_realloc(NULL, data, index == 0 ? 101 : 3000000);
    ck_assert_ptr_nonnull(data);
    ck_assert_uint_eq(left_over(mi), 0);
    api->block_free(NULL, data, 0);
}

TEST(a_block_that_is_held_under_a_name_is_resized_as_a_copy)
{
    memrt_meminfo_t *mi;
    void *data = api->block_alloc(NULL, 100);
    ck_assert_int_eq(api->block_meminfo(data, &mi), MEMRT_OK);
    hold(mi, EXPORT, "a");
    api->release(mi);
    void *copy = api->block_realloc(NULL, data, 200);
    ck_assert_ptr_ne(copy, data);
    ck_assert_uint_eq(count_holders(mi), 1);
    api->release_as(mi, EXPORT, "a");
    api->block_free(NULL, copy, 0);
}

TEST(a_name_that_nobody_has_is_released_plainly)
{
    if (memrt__options.check) {
        return; /* the process would end; test_checking.c has that */
    }
    memrt_meminfo_t *mi = api->allocate(100);
    hold(mi, REFERENCE, "a");
    api->release_as(mi, REFERENCE, "b");
    ck_assert_uint_eq(api->refcount(mi), 1);
    ck_assert_uint_eq(count_holders(mi), 1);
    api->release_as(mi, REFERENCE, NULL);
}

TEST(many_holders_of_many_meminfos_are_told_apart)
{
    static memrt_meminfo_t *mis[MANY];
    char name[16];
    for (size_t i = 0; i < MANY; i++) {
        mis[i] = api->allocate(i);
        snprintf(name, sizeof(name), "%zu", i);
        hold(mis[i], REFERENCE, name);
        hold(mis[i], REFERENCE, "all");
    }
    for (size_t i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "%zu", i);
        ck_assert_uint_eq(count_holders(mis[i]), 2);
        ck_assert_str_eq(row_of(mis[i], 0).name, name);
        api->release_as(mis[i], REFERENCE, name);
        ck_assert_str_eq(row_of(mis[i], 0).name, "all");
        api->release_as(mis[i], REFERENCE, "all");
        api->release(mis[i]);
    }
}

TEST(without_memory_for_a_larger_table_all_is_found_still)
{
    /* Every request that follows the first of a pair is one for a larger table. */
    static memrt_meminfo_t *mis[MANY];
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = 2, .every = 1};
    for (size_t i = 0; i < MANY; i++) {
        mis[i] = api->allocate(i);
        ck_assert_int_eq(api->fail_allocations(&plan), MEMRT_OK);
        hold(mis[i], REFERENCE, "a");
        ck_assert_int_eq(api->fail_allocations(NULL), MEMRT_OK);
    }
    for (size_t i = 0; i < MANY; i++) {
        ck_assert_uint_eq(count_holders(mis[i]), 1);
        api->release_as(mis[i], REFERENCE, "a");
        api->release(mis[i]);
    }
}

/// Holds and lets go, each thread under a name of its own.
static void hold_and_let_go(size_t index, void *context)
{
    memrt_meminfo_t *mi = context;
    char name[16];
    snprintf(name, sizeof(name), "%zu", index % 3);
    for (int i = 0; i < 200; i++) {
        REQUIRE(api->acquire_as(mi, REFERENCE, name) == MEMRT_OK);
        REQUIRE(api->holders(mi, NULL, 0, 0) >= 1);
        api->release_as(mi, REFERENCE, name);
    }
}

TEST(threads_hold_one_meminfo_at_once)
{
    memrt_meminfo_t *mi = api->allocate(100);
    crew_run(6, hold_and_let_go, mi);
    ck_assert_uint_eq(count_holders(mi), 0);
    ck_assert_uint_eq(api->refcount(mi), 1);
    api->release(mi);
}
