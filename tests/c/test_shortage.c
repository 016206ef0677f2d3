#include "support/suite.h"

#include <stdio.h>
#include <string.h>

static const char *running = "somewhere";

static size_t running_frames(memrt_frame_t *frames, size_t max)
{
    frames[0] = api->frame_new(running, "program.py", 3);
    return max > 0;
}

/// Track all births, by the frame of `running`.
static memrt_tracking_t track(void)
{
    memrt_tracking_t all = {.struct_size = sizeof(all), .on = 1, .frames = 4}, before = all;
    ck_assert_int_eq(api->tracking_get(&before), MEMRT_OK);
    api->set_frames(running_frames);
    ck_assert_int_eq(api->tracking_set(&all), MEMRT_OK);
    return before;
}

static void track_as(const memrt_tracking_t *before)
{
    api->set_frames(NULL);
    ck_assert_int_eq(api->tracking_set(before), MEMRT_OK);
}

static memrt_meminfo_t *birth_in(const char *function, size_t size)
{
    running = function;
    memrt_meminfo_t *mi = api->allocate(size);
    ck_assert_ptr_nonnull(mi);
    return mi;
}

static char text[8192];

static void explain(size_t size)
{
    size_t length = api->explain_shortage(NULL, size, text, sizeof(text));
    ck_assert_uint_eq(length, strlen(text));
}

static void expect(const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "no \"%s\" in: %s", part, text);
}

TEST(the_request_and_what_is_live_and_the_limits_are_told)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options), .name = "short"};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    void *data = api->block_alloc(policy, 3 << 20);
    size_t length = api->explain_shortage(policy, (size_t)5 << 30, text, sizeof(text));
    ck_assert_uint_eq(length, strlen(text));
    expect("no memory for 5.0 GiB (5368709120 bytes) of policy 'short'\n");
    expect("3.0 MiB live in the policy, peak 3.0 MiB, kept for reuse 0 bytes\n");
    expect(" live in the process, peak ");
    expect(" in the machine of which ");
    api->block_free(policy, data, 0);
    api->policy_release(policy);
}

TEST(the_places_that_hold_most_are_told_the_largest_first)
{
    memrt_tracking_t before = track();
    memrt_meminfo_t *mis[] = {birth_in("small", 1000), birth_in("large", 50 << 20),
                              birth_in("middle", 2 << 20), birth_in("large", 10 << 20),
                              birth_in("less", 1 << 20)};
    track_as(&before);
    explain(100);
    expect("most of what is live and tracked:\n"
           "  60.0 MiB born in large at program.py:3\n"
           "  2.0 MiB born in middle at program.py:3\n"
           "  1.0 MiB born in less at program.py:3\n");
    ck_assert_ptr_null(strstr(text, "small"));
    for (size_t i = 0; i < sizeof(mis) / sizeof(mis[0]); i++) {
        api->release(mis[i]);
    }
}

TEST(a_place_that_holds_most_is_found_among_very_many)
{
    memrt_meminfo_t *mis[501];
    char name[32];
    memrt_tracking_t before = track();
    for (size_t i = 0; i < 500; i++) {
        snprintf(name, sizeof(name), "place%zu", i);
        mis[i] = birth_in(name, 10000);
    }
    mis[500] = birth_in("large", 1 << 20);
    track_as(&before);
    explain(100);
    expect("most of what is live and tracked:\n  1.0 MiB born in large at program.py:3\n  9.8 KiB");
    for (size_t i = 0; i <= 500; i++) {
        api->release(mis[i]);
    }
}

TEST(the_largest_that_have_a_name_or_are_held_under_one_are_told_with_who_holds_them)
{
    memrt_tracking_t before = track();
    memrt_meminfo_t *mis[] = {birth_in("f", 1 << 20), birth_in("f", 40 << 20),
                              birth_in("f", 3 << 20), birth_in("f", 2 << 20),
                              birth_in("f", 5 << 20)};
    track_as(&before);
    explain(100);
    ck_assert_ptr_null(strstr(text, "with a name"));
    ck_assert_int_eq(api->set_name(mis[0], "too small"), MEMRT_OK);
    ck_assert_int_eq(api->set_name(mis[2], "lookup table"), MEMRT_OK);
    ck_assert_int_eq(api->acquire_as(mis[2], MEMRT_HOLDER_REFERENCE, "index"), MEMRT_OK);
    ck_assert_int_eq(api->set_name(mis[3], "mask"), MEMRT_OK);
    ck_assert_int_eq(api->acquire_as(mis[4], MEMRT_HOLDER_EXPORT, "torch"), MEMRT_OK);
    explain(100);
    expect("the largest with a name:\n"
           "  5.0 MiB, held by C export 'torch'\n"
           "  3.0 MiB 'lookup table', held by C reference 'index'\n"
           "  2.0 MiB 'mask'\n");
    ck_assert_ptr_null(strstr(text, "too small"));
    api->release_as(mis[2], MEMRT_HOLDER_REFERENCE, "index");
    api->release_as(mis[4], MEMRT_HOLDER_EXPORT, "torch");
    explain(100);
    expect("the largest with a name:\n  3.0 MiB 'lookup table'\n");
    for (size_t i = 0; i < sizeof(mis) / sizeof(mis[0]); i++) {
        api->release(mis[i]);
    }
}

TEST(where_nothing_was_tracked_it_says_how_to)
{
    explain(100);
    expect(api->tracking_enabled() ? "no place of birth is recorded" : "MEMRT_TRACK=1\n");
}

TEST(a_failure_on_purpose_is_told)
{
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = 1000};
    ck_assert_int_eq(api->fail_allocations(&plan), MEMRT_OK);
    explain(0);
    ck_assert_int_eq(api->fail_allocations(NULL), MEMRT_OK);
    ck_assert_msg(strncmp(text, "a plan of failures is set", 25) == 0, "%s", text);
}

TEST(a_text_that_does_not_fit_is_cut)
{
    char few[20];
    explain(100);
    size_t all = strlen(text);
    ck_assert_uint_ge(api->explain_shortage(NULL, 100, few, sizeof(few)) + 100, all);
    ck_assert_str_eq(few, "no memory for 100 b");
    ck_assert_uint_gt(api->explain_shortage(NULL, 100, NULL, 0), 100);
}

TEST(an_absurd_request_has_a_unit_too)
{
    explain(SIZE_MAX);
    expect("no memory for 16.0 EiB (18446744073709551615 bytes)");
}

TEST(one_place_alone_is_told_as_well)
{
    memrt_tracking_t before = track();
    memrt_meminfo_t *mi = birth_in("alone", 5 << 20);
    track_as(&before);
    explain(100);
    expect("  5.0 MiB born in alone at program.py:3\n");
    api->release(mi);
}
