#include "support/suite.h"

#include <string.h>

#include "api/checking_table.h"
#include "api/plain_table.h"
#include "runtime/alloc/guard/frozen_pages.h"
#include "runtime/config/options.h"
#include "support/books.h"
#include "support/crew.h"

TEST(api_table_reports_size_abi_and_version)
{
    ck_assert_uint_eq(api->struct_size, sizeof(memrt_api_t));
    ck_assert_uint_eq(api->abi_major, MEMRT_ABI_MAJOR);
    ck_assert_uint_eq(api->abi_minor, MEMRT_ABI_MINOR);
    ck_assert_str_eq(api->version, MEMRT_VERSION);
    ck_assert_str_eq(memrt_version(), MEMRT_VERSION);
}

/// Check every word of a table, except the five words of its identity, struct_size to version.
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

TEST(both_api_tables_have_no_empty_slot)
{
    expect_no_empty_slot(&memrt__plain_table);
    expect_no_empty_slot(&memrt__checking_table);
    ck_assert_uint_eq(memrt__plain_table.features & MEMRT_FEATURE_CHECKING, 0);
    ck_assert_uint_ne(memrt__checking_table.features & MEMRT_FEATURE_CHECKING, 0);
}

TEST(counters_feature_matches_counted_statistics)
{
    uint64_t counters = memrt__checking_table.features & MEMRT_FEATURE_COUNTERS;
    ck_assert_uint_eq(memrt__plain_table.features & MEMRT_FEATURE_COUNTERS, counters);
    size_t before = stats_of(NULL).live;
    memrt_meminfo_t *mi = api->allocate(100);
    ck_assert_ptr_nonnull(mi);
    ck_assert_uint_eq(stats_of(NULL).live - before, counters == 0 ? 0 : 100);
    api->release(mi);
}

TEST(full_api_table_is_found_from_numba_slots)
{
    ck_assert_ptr_eq(memrt_api_of_nrt(api), api);
}

TEST(get_data_works_for_refcount_equal_to_probe)
{
    memrt_meminfo_t counted = {.refct = MEMRT_PROBE, .data = &counted};
    ck_assert_ptr_eq(memrt__plain_table.get_data(&counted), &counted);
}

TEST(get_api_returns_same_table_every_time)
{
    const char *why = "untouched";
    ck_assert_ptr_eq(memrt_get_api(MEMRT_ABI_MAJOR, &why), api);
    ck_assert_str_eq(why, "untouched");
}

static const uint32_t other_majors[] = {0, MEMRT_ABI_MAJOR + 1, UINT32_MAX};

TEST_EACH(other_abi_major_is_refused_with_message, 3)
{
    const char *why = NULL;
    ck_assert_ptr_null(memrt_get_api(other_majors[index], &why));
    ck_assert_ptr_nonnull(why);
    ck_assert_ptr_nonnull(strstr(why, MEMRT_VERSION));
    ck_assert_ptr_nonnull(strstr(why, "rebuild the caller"));
    ck_assert_ptr_nonnull(strstr(why, "with the caller's ABI"));
    ck_assert_ptr_null(memrt_get_api(other_majors[index], NULL));
}

static void request_other_version(size_t index, void *context)
{
    (void)context;
    for (int i = 0; i < 100; i++) {
        const char *why = NULL;
        REQUIRE(memrt_get_api(MEMRT_ABI_MAJOR + 1 + (uint32_t)index, &why) == NULL);
        REQUIRE(strstr(why, "rebuild") != NULL);
    }
}

TEST(concurrent_abi_refusals_return_null_and_message)
{
    crew_run(4, request_other_version, NULL);
}

TEST(nrt_slots_allocate_acquire_and_release_meminfo)
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

TEST(every_status_has_a_distinct_text)
{
    for (int status = MEMRT_OK; status <= MEMRT_EIO; status++) {
        const char *text = api->status_text((memrt_status_t)status);
        ck_assert_str_ne(text, "");
        for (int other = MEMRT_OK; other < status; other++) {
            ck_assert_str_ne(text, api->status_text((memrt_status_t)other));
        }
    }
    const char *unknown = api->status_text((memrt_status_t)(MEMRT_EIO + 1));
    ck_assert_str_eq(unknown, "unknown status");
    ck_assert_str_eq(api->status_text((memrt_status_t)-1), unknown);
}

TEST(limit_status_text_names_all_limits)
{
    static const char *const limits[] = {"4095 policies",
                                         "4096 scopes",
                                         "8 hooks",
                                         "32 callbacks for memory pressure",
                                         "64 suppression patterns",
                                         "4096 frozen arrays",
                                         "64 callbacks for refusals",
                                         "a million symbols"};
    ck_assert_uint_eq(MEMRT_SCOPES_MAX, 4096);
    ck_assert_uint_eq(MEMRT_HOOKS_MAX, 8);
    ck_assert_uint_eq(MEMRT_PRESSURE_CALLBACKS, 32);
    ck_assert_uint_eq(MEMRT_RECLAIM_MAX, 64);
    ck_assert_uint_eq(MEMRT__FROZEN_BUFFERS, 4096);
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        ck_assert_ptr_nonnull(strstr(api->status_text(MEMRT_ELIMIT), limits[i]));
    }
}

TEST(option_and_warning_lists_end_after_last_row)
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

TEST(invalid_failure_plan_is_refused_and_old_plan_stays)
{
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = 1, .every = 1};
    ck_assert_int_eq(api->fail_allocations(&plan), MEMRT_OK);
    memrt_failure_plan_t bad[] = {plan, plan, plan};
    bad[0].struct_size = offsetof(memrt_failure_plan_t, min_size) - 1;
    bad[1].min_size = 2;
    bad[1].max_size = 1;
    bad[2].kinds = MEMRT_FAULT_RECORD << 1;
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(api->fail_allocations(&bad[i]), MEMRT_EINVAL);
    }
    ck_assert_ptr_null(api->block_alloc(NULL, 10));
    ck_assert_uint_ge(api->failure_points(), 1);
    ck_assert_int_eq(api->fail_allocations(NULL), MEMRT_OK);
}

TEST(static_allocators_have_their_names)
{
    ck_assert_str_eq(api->allocator_default()->name, memrt__options.cache ? "heap" : "uncached");
    ck_assert_str_eq(api->allocator_system()->name, "system");
    ck_assert_str_eq(api->allocator_mapped()->name, "mapped");
}
