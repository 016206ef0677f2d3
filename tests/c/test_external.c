#include "support/suite.h"

#include <string.h>

#include "api/table.h"
#include "runtime/base/options.h"
#include "support/books.h"
#include "support/crew.h"

TEST(the_table_says_what_it_is)
{
    ck_assert_uint_eq(api->struct_size, sizeof(memrt_api_t));
    ck_assert_uint_eq(api->abi_major, MEMRT_ABI_MAJOR);
    ck_assert_uint_eq(api->abi_minor, MEMRT_ABI_MINOR);
    ck_assert_str_eq(api->version, MEMRT_VERSION);
    ck_assert_str_eq(memrt_version(), MEMRT_VERSION);
}

/// Every word of a table but the five that say what it is.
static void expect_no_empty_slot(const memrt_api_t *table)
{
    size_t words[sizeof(*table) / sizeof(size_t)];
    memcpy(words, table, sizeof(*table));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t offset = i * sizeof(size_t);
        if (offset < offsetof(memrt_api_t, struct_size) ||
            offset > offsetof(memrt_api_t, version)) {
            ck_assert_msg(words[i] != 0, "slot %zu is empty", i);
        }
    }
}

TEST(no_slot_is_empty_in_either_table)
{
    expect_no_empty_slot(&memrt__plain_table);
    expect_no_empty_slot(memrt__checking_table());
    ck_assert_uint_eq(memrt__plain_table.features & MEMRT_FEATURE_CHECKING, 0);
    ck_assert_uint_ne(memrt__checking_table()->features & MEMRT_FEATURE_CHECKING, 0);
}

TEST(a_table_says_whether_statistics_are_counted_and_so_it_is)
{
    uint64_t counters = memrt__checking_table()->features & MEMRT_FEATURE_COUNTERS;
    ck_assert_uint_eq(memrt__plain_table.features & MEMRT_FEATURE_COUNTERS, counters);
    size_t before = stats_of(NULL).live;
    memrt_meminfo_t *mi = api->allocate(100);
    ck_assert_ptr_nonnull(mi);
    ck_assert_uint_eq(stats_of(NULL).live - before, counters == 0 ? 0 : 100);
    api->release(mi);
}

TEST(the_whole_table_is_found_from_the_six_slots_that_numba_hands_out)
{
    ck_assert_ptr_eq(memrt_api_of_nrt(api), api);
}

TEST(a_meminfo_that_is_counted_as_high_as_the_question_is_none)
{
    memrt_meminfo_t counted = {.refct = MEMRT_PROBE, .data = &counted};
    ck_assert_ptr_eq(memrt__plain_table.get_data(&counted), &counted);
}

TEST(the_table_is_the_same_every_time)
{
    const char *why = "untouched";
    ck_assert_ptr_eq(memrt_get_api(MEMRT_ABI_MAJOR, &why), api);
    ck_assert_str_eq(why, "untouched");
}

static const uint32_t other_majors[] = {0, MEMRT_ABI_MAJOR + 1, UINT32_MAX};

TEST_EACH(another_major_is_refused_with_a_sentence, 3)
{
    const char *why = NULL;
    ck_assert_ptr_null(memrt_get_api(other_majors[index], &why));
    ck_assert_ptr_nonnull(why);
    ck_assert_ptr_nonnull(strstr(why, MEMRT_VERSION));
    ck_assert_ptr_nonnull(strstr(why, "rebuild the caller"));
    ck_assert_ptr_nonnull(strstr(why, "with the caller's ABI"));
    ck_assert_ptr_null(memrt_get_api(other_majors[index], NULL));
}

static void ask_for_another(size_t index, void *context)
{
    (void)context;
    for (int i = 0; i < 100; i++) {
        const char *why = NULL;
        REQUIRE(memrt_get_api(MEMRT_ABI_MAJOR + 1 + (uint32_t)index, &why) == NULL);
        REQUIRE(strstr(why, "rebuild") != NULL);
    }
}

TEST(threads_may_be_refused_at_the_same_time)
{
    crew_run(4, ask_for_another, NULL);
}

TEST(the_six_slots_of_nrt_work_through_the_table)
{
    memrt_meminfo_t *mi = api->allocate(64);
    ck_assert_ptr_nonnull(mi);
    api->acquire(mi);
    ck_assert_uint_eq(mi->refct, 2);
    ck_assert_ptr_eq(api->get_data(mi), mi->data);
    api->release(mi);
    ck_assert_uint_eq(mi->refct, 1);
    api->release(mi);
}

TEST(every_status_has_a_sentence_of_its_own)
{
    for (int status = MEMRT_OK; status <= MEMRT_EIO; status++) {
        const char *text = api->status_text((memrt_status_t)status);
        ck_assert_str_ne(text, "");
        for (int other = MEMRT_OK; other < status; other++) {
            ck_assert_str_ne(text, api->status_text((memrt_status_t)other));
        }
    }
    const char *unknown = api->status_text((memrt_status_t)(MEMRT_EIO + 1));
    ck_assert_str_eq(unknown, "not a status of this version");
    ck_assert_str_eq(api->status_text((memrt_status_t)-1), unknown);
}

TEST(options_and_warnings_end)
{
    memrt_option_t row;
    size_t rows = 0, warnings = 0;
    while (api->option(rows, &row)) {
        rows++;
    }
    while (api->option_warning(warnings) != NULL) {
        warnings++;
    }
    ck_assert_uint_ge(rows, 4);
    ck_assert_int_eq(api->option(SIZE_MAX, &row), 0);
    ck_assert_ptr_null(api->option_warning(SIZE_MAX));
}

TEST(a_plan_that_is_too_short_is_refused_and_the_one_before_stays)
{
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = 1, .every = 1};
    ck_assert_int_eq(api->fail_allocations(&plan), MEMRT_OK);
    plan.struct_size--;
    ck_assert_int_eq(api->fail_allocations(&plan), MEMRT_EINVAL);
    ck_assert_ptr_null(api->block_alloc(NULL, 10));
    ck_assert_uint_ge(api->failure_points(), 1);
    ck_assert_int_eq(api->fail_allocations(NULL), MEMRT_OK);
}

TEST(the_static_allocators_have_their_names)
{
    ck_assert_str_eq(api->allocator_default()->name, memrt__options.cache ? "pool" : "plain");
    ck_assert_str_eq(api->allocator_system()->name, "system");
    ck_assert_str_eq(api->allocator_mapped()->name, "mapped");
}
