#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/config/options.h"
#include "runtime/observe/live_set.h"
#include "runtime/observe/tracking.h"
#include "runtime/report/leak_report.h"
#include "support/child.h"

/// Behavior of a child that leaks, and of its leak report.
typedef struct program {
    memrt__leaks_t leaks;
    int status; ///< exit status
    size_t buffers;
    const char *function; ///< allocation site
} program_t;

static const char *running = "somewhere";
static size_t callers; ///< number of further frames

static size_t write_running_frames(memrt_frame_t *frames, size_t max)
{
    size_t count = 0;
    frames[count++] = api->frame_new(running, "program.py", 3);
    while (count < max && count <= callers) {
        frames[count] = api->frame_new("caller", "program.py", 100 + count);
        count++;
    }
    return count;
}

static void start_program(const program_t *program)
{
    memrt_tracking_t all = {.struct_size = sizeof(all), .on = 1, .frames = 16};
    memrt__live_forked(); /* drops the entries of the test process */
    memrt__options.leaks = program->leaks;
    memrt__leak_report_start();
    running = program->function;
    api->set_frames(write_running_frames);
    REQUIRE(api->tracking_set(&all) == MEMRT_OK);
}

static void leak_buffers(void *context)
{
    const program_t *program = context;
    start_program(program);
    for (size_t i = 0; i < program->buffers; i++) {
        REQUIRE(api->allocate(1000) != NULL);
    }
    exit(program->status);
}

TEST(leak_report_lists_bytes_and_sites_and_sets_exit_status)
{
    program_t program = {MEMRT__LEAKS_FAIL, 0, 3, "forgets"};
    child_expect_exit(leak_buffers, &program, 23,
                      "memrt: 3 buffers still live at exit, 3000 bytes\n"
                      "  3000 bytes in 3 buffers, allocated at\n"
                      "      forgets at program.py:3\n");
}

static void leak_to_holders(void *context)
{
    static const char *const names[] = {"index", "index", "reader", "torch", "fourth"};
    start_program(context);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        memrt_meminfo_t *mi = api->allocate(1000), *unnamed = api->allocate(1000);
        memrt_holder_kind_t kind = i == 3 ? MEMRT_HOLDER_EXPORT : MEMRT_HOLDER_REFERENCE;
        REQUIRE(mi != NULL && unnamed != NULL && api->acquire_as(mi, kind, names[i]) == MEMRT_OK);
        api->release(mi);
    }
    exit(0);
}

TEST(leak_report_lists_equal_named_references_once)
{
    program_t program = {MEMRT__LEAKS_FAIL, 0, 0, "forgets"};
    child_expect_exit(leak_to_holders, &program, 23,
                      "  10000 bytes in 10 buffers, allocated at\n"
                      "      forgets at program.py:3\n"
                      "      held by C reference 'index'\n"
                      "      held by C reference 'reader'\n"
                      "      held by C export 'torch'\n");
}

TEST(leak_report_mode_keeps_exit_status)
{
    program_t program = {MEMRT__LEAKS_REPORT, 0, 1, "forgets"};
    child_expect_exit(leak_buffers, &program, 0, "1000 bytes in 1 buffer");
}

TEST(leak_report_keeps_exit_status_of_failed_process)
{
    program_t program = {MEMRT__LEAKS_FAIL, 7, 1, "forgets"};
    child_expect_exit(leak_buffers, &program, 7, "1000 bytes in 1 buffer");
}

TEST(process_without_leaks_prints_nothing)
{
    program_t program = {MEMRT__LEAKS_FAIL, 0, 0, "forgets"};
    child_expect_exit(leak_buffers, &program, 0, NULL);
}

TEST(leaks_are_not_reported_when_report_is_off)
{
    program_t program = {MEMRT__LEAKS_OFF, 0, 2, "forgets"};
    child_expect_exit(leak_buffers, &program, 0, NULL);
}

static void leak_at_many_sites(void *context)
{
    char name[16];
    start_program(context);
    callers = 8;
    for (size_t i = 1; i <= 15; i++) {
        snprintf(name, sizeof(name), "place%zu", i);
        running = name;
        REQUIRE(api->allocate(i * 100) != NULL);
    }
    running = NULL;
    exit(0);
}

TEST(leak_report_shows_ten_largest_sites_with_five_frames)
{
    program_t program = {MEMRT__LEAKS_FAIL, 0, 0, "unused"};
    child_expect_exit(leak_at_many_sites, &program, 23,
                      "  1500 bytes in 1 buffer, allocated at\n"
                      "      place15 at program.py:3\n"
                      "      caller at program.py:101\n"
                      "      caller at program.py:102\n"
                      "      caller at program.py:103\n"
                      "      caller at program.py:104\n"
                      "  1400 bytes in 1 buffer, allocated at\n");
    child_expect_exit(leak_at_many_sites, &program, 23, "  and at 5 more sites\n");
}

static void leak_suppressed(void *context)
{
    program_t *program = context;
    REQUIRE(api->suppression_add("cache at */pro*.py:*", "a wrong pattern") == MEMRT_OK);
    REQUIRE(api->suppression_add("cache at pro*.py:*", "the cache of a test") == MEMRT_OK);
    start_program(program);
    REQUIRE(api->allocate(50) != NULL);
    running = "forgets";
    REQUIRE(program->buffers == 0 || api->allocate(60) != NULL);
    exit(0);
}

TEST(suppressed_buffer_is_not_a_leak_but_listed_beside_leaks)
{
    program_t program = {MEMRT__LEAKS_FAIL, 0, 0, "cache"};
    child_expect_exit(leak_suppressed, &program, 0, NULL);
    program.buffers = 1;
    child_expect_exit(leak_suppressed, &program, 23,
                      "  60 bytes in 1 buffer, allocated at\n"
                      "      forgets at program.py:3\n"
                      "  suppressed: 50 bytes in 1 buffer, the cache of a test\n");
}

static void leak_without_site(void *context)
{
    start_program(context);
    api->set_frames(NULL);
    REQUIRE(api->allocate(1) != NULL);
    exit(0);
}

TEST(leak_report_without_site_names_option_to_record_sites)
{
    program_t program = {MEMRT__LEAKS_FAIL, 0, 0, "unused"};
    child_expect_exit(leak_without_site, &program, 23,
                      "allocated at an unknown site: MEMRT_TRACK_NATIVE=8 records");
}

TEST(invalid_suppressions_are_refused)
{
    char name[300];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    ck_assert_int_eq(api->suppression_add(NULL, "what"), MEMRT_EINVAL);
    ck_assert_int_eq(api->suppression_add("pattern", NULL), MEMRT_EINVAL);
    ck_assert_int_eq(api->suppression_add("", "what"), MEMRT_EINVAL);
    ck_assert_int_eq(api->suppression_add("pattern", ""), MEMRT_EINVAL);
    ck_assert_int_eq(api->suppression_add(name, "what"), MEMRT_EINVAL);
    ck_assert_int_eq(api->suppression_add("pattern", name), MEMRT_EINVAL);
}

static void add_too_many_suppressions(void *context)
{
    (void)context;
    memrt_status_t status = MEMRT_OK;
    for (size_t i = 0; i < 64; i++) {
        status = api->suppression_add("pattern", "what");
    }
    _exit(status == MEMRT_OK ? (int)api->suppression_add("pattern", "what") : 99);
}

TEST(suppressions_beyond_limit_are_refused)
{
    child_expect_exit(add_too_many_suppressions, NULL, MEMRT_ELIMIT, NULL);
}
