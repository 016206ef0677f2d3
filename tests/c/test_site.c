#include "support/crew.h"
#include "support/suite.h"

#include <dlfcn.h>
#include <string.h>

#include "runtime/base/failure.h"
#include "runtime/debug/site.h"
#include "runtime/stats/thread.h"

static memrt_frame_t running[4]; /* what the interpreter of a test runs, innermost first */
static size_t depth;

static size_t running_frames(memrt_frame_t *frames, size_t max)
{
    size_t count = depth < max ? depth : max;
    memcpy(frames, running, count * sizeof(*frames));
    return count;
}

static void run_two(const char *inner, const char *outer)
{
    running[0] = memrt__frame_new(inner, "module.py", 7);
    running[1] = memrt__frame_new(outer, "module.py", 20);
    depth = 2;
    memrt__site_set_frames(running_frames);
}

static void run_none(void)
{
    depth = 0;
    memrt__site_set_frames(NULL);
}

static memrt_frame_text_t text_of(memrt_frame_t frame)
{
    memrt_frame_text_t text = {.struct_size = sizeof(text)};
    ck_assert_int_eq(memrt__frame_text(frame, &text), MEMRT_OK);
    return text;
}

TEST(equal_frames_of_an_interpreter_are_one)
{
    memrt_frame_t frame = memrt__frame_new("load", "data.py", 12);
    ck_assert_uint_ne(frame, 0);
    ck_assert_uint_eq(memrt__frame_new("load", "data.py", 12), frame);
    ck_assert_uint_ne(memrt__frame_new("load", "data.py", 13), frame);
    ck_assert_uint_ne(memrt__frame_new("loa", "ddata.py", 12), frame);
    memrt_frame_text_t text = text_of(frame);
    ck_assert_str_eq(text.function, "load");
    ck_assert_str_eq(text.file, "data.py");
    ck_assert_uint_eq(text.line, 12);
    ck_assert_int_eq(text.native, 0);
}

TEST(a_frame_says_null_for_what_is_not_known)
{
    memrt_frame_text_t text = text_of(memrt__frame_new(NULL, "", 3));
    ck_assert_ptr_null(text.function);
    ck_assert_ptr_null(text.file);
    ck_assert_uint_eq(text.line, 3);
}

TEST(long_texts_are_cut)
{
    char name[5000];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    memrt_frame_text_t text = text_of(memrt__frame_new(name, name, 1));
    ck_assert_uint_eq(strlen(text.function), 1023);
    ck_assert_uint_eq(strlen(text.file), 1023);
}

TEST(a_native_frame_is_told_by_function_and_object)
{
    memrt_frame_t frame = (uintptr_t)dlsym(RTLD_DEFAULT, "gnu_get_libc_version") + 3;
    memrt_frame_text_t text = text_of(frame);
    ck_assert_int_eq(text.native, 1);
    ck_assert_uint_eq(text.line, 0);
    ck_assert_ptr_nonnull(strstr(text.file, "libc"));
    ck_assert_str_eq(text.function, "gnu_get_libc_version");
    ck_assert_uint_eq(text.offset, 3);
    ck_assert_ptr_null(text_of(2).file);
    ck_assert_uint_eq(text_of(2).offset, 2);
}

TEST(frames_and_sites_that_are_none_are_not_found)
{
    memrt_frame_text_t text = {.struct_size = sizeof(text), .line = 77};
    memrt_site_t site = {.struct_size = sizeof(site), .births = 77};
    memrt_frame_t frames[1];
    ck_assert_int_eq(memrt__frame_text(0, &text), MEMRT_ENOENT);
    ck_assert_int_eq(memrt__frame_text(UINT64_MAX, &text), MEMRT_ENOENT);
    ck_assert_uint_eq(text.line, 77);
    ck_assert_int_eq(memrt__site_read(0, &site), MEMRT_ENOENT);
    ck_assert_int_eq(memrt__site_read(UINT32_MAX, &site), MEMRT_ENOENT);
    ck_assert_uint_eq(site.births, 77);
    ck_assert_uint_eq(memrt__site_frames(0, frames, 1), 0);
    text.struct_size = site.struct_size = 8;
    ck_assert_int_eq(memrt__frame_text(1, &text), MEMRT_EINVAL);
    ck_assert_int_eq(memrt__site_read(1, &site), MEMRT_EINVAL);
}

TEST(a_site_is_the_chain_of_calls_of_the_interpreter)
{
    run_two("inner", "outer");
    uint32_t site = memrt__site_here(8, 0);
    ck_assert_uint_ne(site, 0);
    ck_assert_uint_eq(memrt__site_here(8, 0), site);
    uint32_t cut = memrt__site_here(1, 0);
    ck_assert_uint_ne(cut, site);
    memrt_frame_t frames[4] = {0};
    ck_assert_uint_eq(memrt__site_frames(site, frames, 4), 2);
    ck_assert_int_eq(memcmp(frames, running, 2 * sizeof(frames[0])), 0);
    frames[1] = 0;
    ck_assert_uint_eq(memrt__site_frames(site, frames, 1), 2);
    ck_assert_uint_eq(frames[1], 0);
    run_none();
    ck_assert_uint_eq(memrt__site_here(8, 0), 0);
    ck_assert_uint_eq(memrt__site_here(0, 0), 0);
}

TEST(births_of_a_site_are_counted_with_their_bytes)
{
    run_two("counted", "outer");
    uint32_t number = memrt__site_here(2, 0);
    run_none();
    memrt_site_t site = {.struct_size = sizeof(site)};
    memrt__site_count(number, 100);
    memrt__site_count(number, 20);
    memrt__site_count(0, 20); /* of no site: nothing happens */
    ck_assert_int_eq(memrt__site_read(number, &site), MEMRT_OK);
    ck_assert_uint_eq(site.births, 2);
    ck_assert_uint_eq(site.bytes, 120);
    ck_assert_uint_eq(site.frames, 2);
}

#define MAKERS 4
#define MADE 1000

static void make_many(size_t index, void *context)
{
    const uint32_t *number = context;
    REQUIRE(memrt__thread_self() != NULL);
    for (size_t i = 0; i < MADE * index; i++) { /* one thread counts nothing */
        memrt__site_count(*number, 10);
    }
}

TEST(births_that_several_threads_count_at_once_are_all_there_after_these_end)
{
    run_two("by threads", "outer");
    uint32_t number = memrt__site_here(2, 0);
    run_none();
    crew_run(MAKERS, make_many, &number);
    memrt_site_t site = {.struct_size = sizeof(site)};
    ck_assert_int_eq(memrt__site_read(number, &site), MEMRT_OK);
    ck_assert_uint_eq(site.births, MADE * (0 + 1 + 2 + 3));
    ck_assert_uint_eq(site.bytes, MADE * (0 + 1 + 2 + 3) * 10);
}

static void count_while_request_fails(uint32_t number, uint64_t nth)
{
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = nth, .this_thread_only = 1};
    memrt__failure_set(&plan);
    memrt__site_count(number, 10);
    memrt__failure_set(NULL);
}

TEST(births_that_there_is_no_memory_to_count_apart_are_counted)
{
    run_two("without memory", "outer");
    uint32_t number = memrt__site_here(2, 0);
    run_none();
    count_while_request_fails(number, 1); /* the thread's record */
    count_while_request_fails(number, 2); /* the table of its counts */
    count_while_request_fails(number, 2); /* the counts of such numbers */
    count_while_request_fails(number, 1); /* they once more */
    memrt_site_t site = {.struct_size = sizeof(site)};
    ck_assert_int_eq(memrt__site_read(number, &site), MEMRT_OK);
    ck_assert_uint_eq(site.births, 4);
    ck_assert_uint_eq(site.bytes, 40);
}

static const char *line_of(memrt_frame_t frame)
{
    static char line[MEMRT__FRAME_LINE];
    memrt__frame_line(frame, line, sizeof(line));
    return line;
}

TEST(a_frame_is_told_in_one_line)
{
    memrt_frame_t native = (uintptr_t)dlsym(RTLD_DEFAULT, "gnu_get_libc_version") + 3;
    ck_assert_str_eq(line_of(memrt__frame_new("load", "data.py", 12)), "load at data.py:12");
    ck_assert_str_eq(line_of(memrt__frame_new(NULL, NULL, 0)), "? at ?:0");
    ck_assert_str_eq(line_of(2), "+0x2 in code made at run time");
    ck_assert_str_eq(line_of(0), "?");
    ck_assert_int_eq(strncmp(line_of(native), "gnu_get_libc_version+0x3 in ", 28), 0);
}

TEST(native_calls_alone_make_a_site_too)
{
    uint32_t site = memrt__site_here(0, 8);
    memrt_frame_t frames[8];
    size_t count = memrt__site_frames(site, frames, 8);
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(text_of(frames[i]).native, 1);
    }
}

TEST(an_interpreter_is_not_asked_where_none_of_its_calls_are_wanted)
{
    run_two("inner", "outer");
    uint32_t with = memrt__site_here(1, 0);
    ck_assert_uint_ne(with, 0);
    ck_assert_uint_eq(memrt__site_here(0, 0), 0);
    run_none();
}
