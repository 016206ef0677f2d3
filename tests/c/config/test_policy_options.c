#include "support/suite.h"

#include <string.h>

#include "runtime/config/policy_options.h"

TEST(policy_limits_list_only_options_that_are_set)
{
    memrt__limits_t own;
    memrt_option_t row;
    ck_assert(memrt__limits_read(NULL, NULL, NULL, NULL, &own));
    ck_assert(!memrt__limits_row(&own, 0, &row));
    ck_assert(memrt__limits_read("off", NULL, "never", NULL, &own));
    ck_assert(memrt__limits_row(&own, 0, &row));
    ck_assert_str_eq(row.name, "MEMRT_DECAY");
    ck_assert_str_eq(row.value, "never");
    ck_assert(memrt__limits_row(&own, 1, &row));
    ck_assert_str_eq(row.name, "MEMRT_HUGEPAGES");
    ck_assert_str_eq(row.value, "off");
    ck_assert(!memrt__limits_row(&own, 2, &row));
    ck_assert(!memrt__limits_row(&own, SIZE_MAX, &row));
    ck_assert(memrt__limits_read(NULL, "none", NULL, NULL, &own));
    ck_assert(memrt__limits_row(&own, 0, &row));
    ck_assert_str_eq(row.value, "none");
    ck_assert(!memrt__limits_read("on", NULL, NULL, NULL, &own));
    ck_assert(!memrt__limits_read(NULL, "many", NULL, NULL, &own));
    ck_assert(!memrt__limits_read(NULL, NULL, "soon", NULL, &own));
    ck_assert(!memrt__limits_read(NULL, NULL, NULL, "all", &own));
}

static memrt__limits_t limits;
static char why[256];

static void expect_changed(const char *name, const char *value, const size_t *limit, size_t number)
{
    ck_assert_int_eq(memrt__limits_change(&limits, name, value, NULL, 0), MEMRT_OK);
    ck_assert_uint_eq(*limit, number);
}

TEST(one_limit_changes_and_the_others_stay)
{
    limits = (memrt__limits_t)MEMRT__INHERIT_ALL;
    expect_changed("cache_limit", "5M", &limits.cache_limit, (size_t)5 << 20);
    expect_changed("DECAY", "7", &limits.decay, 7);
    expect_changed("MEMRT_HUGEPAGES", "advise", &limits.huge_pages, MEMRT__HUGE_ADVISE);
    expect_changed("guard_sample", "64K", &limits.guard_sample, (size_t)64 << 10);
    expect_changed("cache_limit", NULL, &limits.cache_limit, MEMRT__INHERIT);
    ck_assert_uint_eq(limits.decay, 7);
    ck_assert_uint_eq(limits.huge_pages, MEMRT__HUGE_ADVISE);
    expect_changed("guard_sample", NULL, &limits.guard_sample, MEMRT__INHERIT);
}

static void expect_refused(const char *name, const char *value, const char *part)
{
    memrt__limits_t before = limits;
    ck_assert_int_eq(memrt__limits_change(&limits, name, value, why, sizeof(why)), MEMRT_EINVAL);
    ck_assert_msg(strstr(why, part) != NULL, "%s", why);
    ck_assert_mem_eq(&limits, &before, sizeof(limits));
}

TEST(bad_change_of_a_limit_has_a_reason)
{
    limits = (memrt__limits_t)MEMRT__INHERIT_ALL;
    expect_refused("decay", "soon", "decay must be milliseconds from 0 to 86400000, or never");
    expect_refused("MEMRT_CACHE_LIMIT", "-1", "MEMRT_CACHE_LIMIT must be");
    expect_refused("hugepages", "on", "hugepages must be");
    expect_refused("guard_sample", "all", "guard_sample must be");
    expect_refused("MEMRT_CUDA_DRIVER", NULL, "got 'MEMRT_CUDA_DRIVER'"); /* has no number */
    expect_refused("MEMRT_CACHE", "0", "got 'MEMRT_CACHE'");
    expect_refused("nothing", NULL, "option of a live policy must be MEMRT_CACHE_LIMIT");
}

TEST(name_of_the_option_for_guard_pages_is_known)
{
    ck_assert(memrt__limits_is_guard("guard_sample"));
    ck_assert(memrt__limits_is_guard("MEMRT_GUARD_SAMPLE"));
    ck_assert(!memrt__limits_is_guard("MEMRT_DECAY"));
    ck_assert(!memrt__limits_is_guard("guard"));
}
