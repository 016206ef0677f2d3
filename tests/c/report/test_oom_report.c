/// Tests of the out-of-memory report.

#include "support/suite.h"

#include <stdio.h>
#include <string.h>

static const char *running = "somewhere";

static size_t write_running_frames(memrt_frame_t *frames, size_t max)
{
    frames[0] = api->frame_new(running, "program.py", 3);
    return max > 0;
}

/// Track all allocations, with the frame of `running`. Returns the settings before.
static memrt_tracking_t start_tracking(void)
{
    memrt_tracking_t all = {.struct_size = sizeof(all), .on = 1, .frames = 4}, before = all;
    ck_assert_int_eq(api->tracking_get(&before), MEMRT_OK);
    api->set_frames(write_running_frames);
    ck_assert_int_eq(api->tracking_set(&all), MEMRT_OK);
    return before;
}

static void restore_tracking(const memrt_tracking_t *before)
{
    api->set_frames(NULL);
    ck_assert_int_eq(api->tracking_set(before), MEMRT_OK);
}

static memrt_meminfo_t *allocate_in(const char *function, size_t size)
{
    running = function;
    memrt_meminfo_t *mi = api->allocate(size);
    ck_assert_ptr_nonnull(mi);
    return mi;
}

static char text[8192];

static void explain_size(size_t size)
{
    size_t length = api->explain_shortage(NULL, size, text, sizeof(text));
    ck_assert_uint_eq(length, strlen(text));
}

static void expect_text_part(const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "no \"%s\" in: %s", part, text);
}

TEST(report_has_the_request_live_bytes_and_limits)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options), .name = "short"};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    void *data = api->block_alloc(policy, 3 << 20);
    size_t length = api->explain_shortage(policy, (size_t)5 << 30, text, sizeof(text));
    ck_assert_uint_eq(length, strlen(text));
    expect_text_part("no memory for 5.0 GiB (5368709120 bytes) of policy 'short'\n");
    expect_text_part("3.0 MiB live in the policy, peak 3.0 MiB, kept for reuse 0 bytes\n");
    expect_text_part(" live in the process, peak ");
    expect_text_part(" in the machine, ");
    api->block_free(policy, data, 0);
    api->policy_release(policy);
}

TEST(report_lists_the_3_largest_sites_in_order)
{
    memrt_tracking_t before = start_tracking();
    memrt_meminfo_t *mis[] = {allocate_in("small", 1000), allocate_in("large", 50 << 20),
                              allocate_in("middle", 2 << 20), allocate_in("large", 10 << 20),
                              allocate_in("less", 1 << 20)};
    restore_tracking(&before);
    explain_size(100);
    expect_text_part("allocation sites with the most tracked live bytes:\n"
                     "  60.0 MiB allocated in large at program.py:3\n"
                     "  2.0 MiB allocated in middle at program.py:3\n"
                     "  1.0 MiB allocated in less at program.py:3\n");
    ck_assert_ptr_null(strstr(text, "small"));
    for (size_t i = 0; i < sizeof(mis) / sizeof(mis[0]); i++) {
        api->release(mis[i]);
    }
}

TEST(report_finds_the_largest_site_among_501)
{
    memrt_meminfo_t *mis[501];
    char name[32];
    memrt_tracking_t before = start_tracking();
    for (size_t i = 0; i < 500; i++) {
        snprintf(name, sizeof(name), "place%zu", i);
        mis[i] = allocate_in(name, 10000);
    }
    mis[500] = allocate_in("large", 1 << 20);
    restore_tracking(&before);
    explain_size(100);
    expect_text_part(
        "allocation sites with the most tracked live bytes:\n  1.0 MiB allocated in large at "
        "program.py:3\n  9.8 KiB");
    for (size_t i = 0; i <= 500; i++) {
        api->release(mis[i]);
    }
}

TEST(report_lists_largest_named_buffers_and_their_holders)
{
    memrt_tracking_t before = start_tracking();
    memrt_meminfo_t *mis[] = {allocate_in("f", 1 << 20), allocate_in("f", 40 << 20),
                              allocate_in("f", 3 << 20), allocate_in("f", 2 << 20),
                              allocate_in("f", 5 << 20)};
    restore_tracking(&before);
    explain_size(100);
    ck_assert_ptr_null(strstr(text, "with a name"));
    ck_assert_int_eq(api->set_name(mis[0], "too small"), MEMRT_OK);
    ck_assert_int_eq(api->set_name(mis[2], "lookup table"), MEMRT_OK);
    ck_assert_int_eq(api->acquire_as(mis[2], MEMRT_HOLDER_REFERENCE, "index"), MEMRT_OK);
    ck_assert_int_eq(api->set_name(mis[3], "mask"), MEMRT_OK);
    ck_assert_int_eq(api->acquire_as(mis[4], MEMRT_HOLDER_EXPORT, "torch"), MEMRT_OK);
    explain_size(100);
    expect_text_part("largest live buffers with a name or a named reference:\n"
                     "  5.0 MiB, held by C export 'torch'\n"
                     "  3.0 MiB 'lookup table', held by C reference 'index'\n"
                     "  2.0 MiB 'mask'\n");
    ck_assert_ptr_null(strstr(text, "too small"));
    api->release_as(mis[2], MEMRT_HOLDER_REFERENCE, "index");
    api->release_as(mis[4], MEMRT_HOLDER_EXPORT, "torch");
    explain_size(100);
    expect_text_part(
        "largest live buffers with a name or a named reference:\n  3.0 MiB 'lookup table'\n");
    for (size_t i = 0; i < sizeof(mis) / sizeof(mis[0]); i++) {
        api->release(mis[i]);
    }
}

TEST(report_without_sites_explains_their_absence)
{
    explain_size(100);
    expect_text_part(api->tracking_enabled() ? "no allocation site of live buffers"
                                             : "set MEMRT_TRACK=1 ");
}

TEST(report_mentions_active_fault_injection_first)
{
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = 1000};
    ck_assert_int_eq(api->fail_allocations(&plan), MEMRT_OK);
    explain_size(0);
    ck_assert_int_eq(api->fail_allocations(NULL), MEMRT_OK);
    ck_assert_msg(strncmp(text, "fault injection is on", 21) == 0, "%s", text);
}

TEST(report_is_cut_to_the_buffer)
{
    char few[20];
    explain_size(100);
    size_t all = strlen(text);
    ck_assert_uint_ge(api->explain_shortage(NULL, 100, few, sizeof(few)) + 100, all);
    ck_assert_str_eq(few, "no memory for 100 b");
    ck_assert_uint_gt(api->explain_shortage(NULL, 100, NULL, 0), 100);
}

TEST(report_shows_the_largest_request_in_eib)
{
    explain_size(SIZE_MAX);
    expect_text_part("no memory for 16.0 EiB (18446744073709551615 bytes)");
}

TEST(report_lists_a_single_site)
{
    memrt_tracking_t before = start_tracking();
    memrt_meminfo_t *mi = allocate_in("alone", 5 << 20);
    restore_tracking(&before);
    explain_size(100);
    expect_text_part("  5.0 MiB allocated in alone at program.py:3\n");
    api->release(mi);
}

/// Open a scope and allocate a block in the scope.
static memrt_scope_t *fill_scope(memrt_scope_t *parent, const char *name, size_t size, void **block)
{
    memrt_scope_t *scope;
    ck_assert_int_eq(api->scope_open(parent, name, &scope), MEMRT_OK);
    ck_assert_int_eq(api->scope_enter(scope, NULL), MEMRT_OK);
    *block = size == 0 ? NULL : api->block_alloc(NULL, size);
    ck_assert_int_eq(api->scope_enter(NULL, NULL), MEMRT_OK);
    return scope;
}

enum { SCOPES = 5 };

TEST(report_lists_the_3_scopes_with_most_live_bytes)
{
    void *blocks[SCOPES];
    memrt_scope_t *outer = fill_scope(NULL, "outer", 0, &blocks[0]);
    memrt_scope_t *scopes[SCOPES] = {outer, fill_scope(NULL, "small", 1 << 20, &blocks[1]),
                                     fill_scope(outer, "inner", 3 << 20, &blocks[2]),
                                     fill_scope(NULL, "less", 2 << 20, &blocks[3]),
                                     fill_scope(outer, "other", 5 << 20, &blocks[4])};
    explain_size(100);
    expect_text_part("scopes with the most live bytes, with inner scopes:\n"
                     "  8.0 MiB in scope 'outer'\n"
                     "  5.0 MiB in scope 'outer/other'\n"
                     "  3.0 MiB in scope 'outer/inner'\n");
    ck_assert_ptr_null(strstr(text, "less"));
    for (size_t i = 0; i < SCOPES; i++) {
        api->block_free(NULL, blocks[i], 0);
    }
    explain_size(100); /* scopes without live bytes are not listed */
    ck_assert_ptr_null(strstr(text, "scope"));
    for (size_t i = 0; i < SCOPES; i++) {
        api->scope_release(scopes[i]);
    }
}
