#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/options.h"
#include "runtime/debug/live.h"
#include "runtime/debug/tracking.h"
#include "runtime/leaks.h"
#include "support/child.h"

/// What a child does that is to be reported of.
typedef struct program {
    memrt__leaks_t leaks;
    int status; ///< that it ends with
    size_t buffers;
    const char *function; ///< in which they are born
} program_t;

static const char *running = "somewhere";
static size_t callers; ///< lines of one more function each

static size_t running_frames(memrt_frame_t *frames, size_t max)
{
    size_t count = 0;
    frames[count++] = api->frame_new(running, "program.py", 3);
    while (count < max && count <= callers) {
        frames[count] = api->frame_new("caller", "program.py", 100 + count);
        count++;
    }
    return count;
}

static void begin(const program_t *program)
{
    memrt_tracking_t all = {.struct_size = sizeof(all), .on = 1, .frames = 16};
    memrt__live_forked(); /* nothing of the tests' own counts */
    memrt__options.leaks = program->leaks;
    memrt__leaks_start();
    running = program->function;
    api->set_frames(running_frames);
    if (api->tracking_set(&all) != MEMRT_OK) {
        abort();
    }
}

static void leak(void *context)
{
    const program_t *program = context;
    begin(program);
    for (size_t i = 0; i < program->buffers; i++) {
        if (api->allocate(1000) == NULL) {
            abort();
        }
    }
    exit(program->status);
}

TEST(a_process_with_leaks_says_what_and_where_and_fails_where_asked_to)
{
    program_t program = {MEMRT__LEAKS_FAIL, 0, 3, "forgets"};
    child_expect_exit(leak, &program, 23,
                      "memrt: 3 buffers still live at the end, 3000 bytes\n"
                      "  3000 bytes in 3 buffers, born at\n"
                      "      forgets at program.py:3\n");
}

static void leak_to_holders(void *context)
{
    static const char *const names[] = {"index", "index", "reader", "torch", "fourth"};
    begin(context);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        memrt_meminfo_t *mi = api->allocate(1000), *unnamed = api->allocate(1000);
        memrt_holder_kind_t kind = i == 3 ? MEMRT_HOLDER_EXPORT : MEMRT_HOLDER_REFERENCE;
        if (mi == NULL || unnamed == NULL || api->acquire_as(mi, kind, names[i]) != MEMRT_OK) {
            abort();
        }
        api->release(mi);
    }
    exit(0);
}

TEST(the_names_under_which_c_code_holds_what_is_left_are_told_once_each)
{
    program_t program = {MEMRT__LEAKS_FAIL, 0, 0, "forgets"};
    child_expect_exit(leak_to_holders, &program, 23,
                      "  10000 bytes in 10 buffers, born at\n"
                      "      forgets at program.py:3\n"
                      "      held by C reference 'index'\n"
                      "      held by C reference 'reader'\n"
                      "      held by C export 'torch'\n");
}

TEST(a_report_alone_leaves_the_status)
{
    program_t program = {MEMRT__LEAKS_REPORT, 0, 1, "forgets"};
    child_expect_exit(leak, &program, 0, "1000 bytes in 1 buffer");
}

TEST(a_process_that_failed_by_itself_keeps_its_status)
{
    program_t program = {MEMRT__LEAKS_FAIL, 7, 1, "forgets"};
    child_expect_exit(leak, &program, 7, "1000 bytes in 1 buffer");
}

TEST(a_process_without_leaks_says_nothing)
{
    program_t program = {MEMRT__LEAKS_FAIL, 0, 0, "forgets"};
    child_expect_exit(leak, &program, 0, NULL);
}

TEST(nothing_is_reported_where_nobody_asks)
{
    program_t program = {MEMRT__LEAKS_OFF, 0, 2, "forgets"};
    child_expect_exit(leak, &program, 0, NULL);
}

static void leak_at_many_places(void *context)
{
    char name[16];
    begin(context);
    callers = 8;
    for (size_t i = 1; i <= 15; i++) {
        snprintf(name, sizeof(name), "place%zu", i);
        running = name;
        if (api->allocate(i * 100) == NULL) {
            abort();
        }
    }
    running = NULL;
    exit(0);
}

TEST(the_places_that_hold_most_are_shown_with_some_of_their_calls)
{
    program_t program = {MEMRT__LEAKS_FAIL, 0, 0, "unused"};
    child_expect_exit(leak_at_many_places, &program, 23,
                      "  1500 bytes in 1 buffer, born at\n"
                      "      place15 at program.py:3\n"
                      "      caller at program.py:101\n"
                      "      caller at program.py:102\n"
                      "      caller at program.py:103\n"
                      "      caller at program.py:104\n"
                      "  1400 bytes in 1 buffer, born at\n");
    child_expect_exit(leak_at_many_places, &program, 23, "  and at 5 places more\n");
}

static void leak_what_lasts(void *context)
{
    program_t *program = context;
    if (api->lasting_add("cache at */pro*.py:*", "a wrong pattern") != MEMRT_OK ||
        api->lasting_add("cache at pro*.py:*", "the cache of a test") != MEMRT_OK) {
        abort();
    }
    begin(program);
    if (api->allocate(50) == NULL) {
        abort();
    }
    running = "forgets";
    if (program->buffers != 0 && api->allocate(60) == NULL) {
        abort();
    }
    exit(0);
}

TEST(what_is_known_to_last_is_no_leak_and_told_of_beside_leaks)
{
    program_t program = {MEMRT__LEAKS_FAIL, 0, 0, "cache"};
    child_expect_exit(leak_what_lasts, &program, 0, NULL);
    program.buffers = 1;
    child_expect_exit(leak_what_lasts, &program, 23,
                      "  60 bytes in 1 buffer, born at\n"
                      "      forgets at program.py:3\n"
                      "  known to last: 50 bytes in 1 buffer, the cache of a test\n");
}

static void leak_without_a_place(void *context)
{
    begin(context);
    api->set_frames(NULL);
    if (api->allocate(1) == NULL) {
        abort();
    }
    exit(0);
}

TEST(where_no_place_is_known_the_report_says_how_to_know_it)
{
    program_t program = {MEMRT__LEAKS_FAIL, 0, 0, "unused"};
    child_expect_exit(leak_without_a_place, &program, 23,
                      "born at a place that is not known: MEMRT_TRACK_NATIVE=8 records");
}

TEST(patterns_that_cannot_be_are_refused)
{
    char name[300];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    ck_assert_int_eq(api->lasting_add(NULL, "what"), MEMRT_EINVAL);
    ck_assert_int_eq(api->lasting_add("pattern", NULL), MEMRT_EINVAL);
    ck_assert_int_eq(api->lasting_add("", "what"), MEMRT_EINVAL);
    ck_assert_int_eq(api->lasting_add("pattern", ""), MEMRT_EINVAL);
    ck_assert_int_eq(api->lasting_add(name, "what"), MEMRT_EINVAL);
    ck_assert_int_eq(api->lasting_add("pattern", name), MEMRT_EINVAL);
}

static void add_too_many(void *context)
{
    (void)context;
    memrt_status_t status = MEMRT_OK;
    for (size_t i = 0; i < 64; i++) {
        status = api->lasting_add("pattern", "what");
    }
    _exit(status == MEMRT_OK ? (int)api->lasting_add("pattern", "what") : 99);
}

TEST(patterns_beyond_the_limit_are_refused)
{
    child_expect_exit(add_too_many, NULL, MEMRT_ELIMIT, NULL);
}
