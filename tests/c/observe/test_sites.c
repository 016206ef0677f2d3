#include "support/crew.h"
#include "support/suite.h"

#include <dlfcn.h>
#include <string.h>

#include "runtime/observe/sites.h"
#include "runtime/thread/thread.h"

static memrt_frame_t running[4]; /* simulated Python frames, innermost first */
static size_t depth;
static size_t queries; /* calls of running_frames */

static size_t write_running_frames(memrt_frame_t *frames, size_t max)
{
    size_t count = depth < max ? depth : max;
    queries++;
    memcpy(frames, running, count * sizeof(*frames));
    return count;
}

static void set_two_frames(const char *inner, const char *outer)
{
    running[0] = memrt__frame_new(inner, "module.py", 7);
    running[1] = memrt__frame_new(outer, "module.py", 20);
    depth = 2;
    memrt__site_set_frames(write_running_frames);
}

static void clear_frames(void)
{
    depth = 0;
    memrt__site_set_frames(NULL);
}

static memrt_frame_text_t read_frame_text(memrt_frame_t frame)
{
    memrt_frame_text_t text = {.struct_size = sizeof(text)};
    ck_assert_int_eq(memrt__frame_text(frame, &text), MEMRT_OK);
    return text;
}

TEST(frame_new_returns_the_same_frame_for_equal_values)
{
    memrt_frame_t frame = memrt__frame_new("load", "data.py", 12);
    ck_assert_uint_ne(frame, 0);
    ck_assert_uint_eq(memrt__frame_new("load", "data.py", 12), frame);
    ck_assert_uint_ne(memrt__frame_new("load", "data.py", 13), frame);
    ck_assert_uint_ne(memrt__frame_new("loa", "ddata.py", 12), frame);
    memrt_frame_text_t text = read_frame_text(frame);
    ck_assert_str_eq(text.function, "load");
    ck_assert_str_eq(text.file, "data.py");
    ck_assert_uint_eq(text.line, 12);
    ck_assert_int_eq(text.native, 0);
}

TEST(unknown_function_and_file_of_a_frame_are_null)
{
    memrt_frame_text_t text = read_frame_text(memrt__frame_new(NULL, "", 3));
    ck_assert_ptr_null(text.function);
    ck_assert_ptr_null(text.file);
    ck_assert_uint_eq(text.line, 3);
}

TEST(long_frame_texts_are_cut_to_1023_bytes)
{
    char name[5000];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    memrt_frame_text_t text = read_frame_text(memrt__frame_new(name, name, 1));
    ck_assert_uint_eq(strlen(text.function), 1023);
    ck_assert_uint_eq(strlen(text.file), 1023);
}

TEST(native_frame_has_function_object_and_offset)
{
    memrt_frame_t frame = (uintptr_t)dlsym(RTLD_DEFAULT, "gnu_get_libc_version") + 3;
    memrt_frame_text_t text = read_frame_text(frame);
    ck_assert_int_eq(text.native, 1);
    ck_assert_uint_eq(text.line, 0);
    ck_assert_ptr_nonnull(strstr(text.file, "libc"));
    ck_assert_str_eq(text.function, "gnu_get_libc_version");
    ck_assert_uint_eq(text.offset, 3);
    ck_assert_ptr_null(read_frame_text(2).file);
    ck_assert_uint_eq(read_frame_text(2).offset, 2);
}

TEST(invalid_frames_and_sites_are_not_found)
{
    memrt_frame_text_t text = {.struct_size = sizeof(text), .line = 77};
    memrt_site_t site = {.struct_size = sizeof(site), .allocations = 77};
    memrt_frame_t frames[1];
    ck_assert_int_eq(memrt__frame_text(0, &text), MEMRT_ENOENT);
    ck_assert_int_eq(memrt__frame_text(UINT64_MAX, &text), MEMRT_ENOENT);
    ck_assert_uint_eq(text.line, 77);
    ck_assert_int_eq(memrt__site_read(0, &site), MEMRT_ENOENT);
    ck_assert_int_eq(memrt__site_read(UINT32_MAX, &site), MEMRT_ENOENT);
    ck_assert_uint_eq(site.allocations, 77);
    ck_assert_uint_eq(memrt__site_frames(0, frames, 1), 0);
    text.struct_size = site.struct_size = 8;
    ck_assert_int_eq(memrt__frame_text(1, &text), MEMRT_EINVAL);
    ck_assert_int_eq(memrt__site_read(1, &site), MEMRT_EINVAL);
}

TEST(site_is_the_call_stack_of_the_interpreter)
{
    set_two_frames("inner", "outer");
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
    clear_frames();
    ck_assert_uint_eq(memrt__site_here(8, 0), 0);
    ck_assert_uint_eq(memrt__site_here(0, 0), 0);
}

TEST(site_counts_allocations_and_bytes)
{
    set_two_frames("counted", "outer");
    uint32_t number = memrt__site_here(2, 0);
    clear_frames();
    memrt_site_t site = {.struct_size = sizeof(site)};
    memrt__site_count(number, 100);
    memrt__site_count(number, 20);
    memrt__site_count(0, 20); /* no site: ignored */
    ck_assert_int_eq(memrt__site_read(number, &site), MEMRT_OK);
    ck_assert_uint_eq(site.allocations, 2);
    ck_assert_uint_eq(site.bytes, 120);
    ck_assert_uint_eq(site.frames, 2);
}

#define MAKERS 4
#define MADE 1000

static void create_many_sites(size_t index, void *context)
{
    const uint32_t *number = context;
    REQUIRE(memrt__thread_self() != NULL);
    for (size_t i = 0; i < MADE * index; i++) { /* thread 0 counts nothing */
        memrt__site_count(*number, 10);
    }
}

TEST(site_counts_include_allocations_of_ended_threads)
{
    set_two_frames("by threads", "outer");
    uint32_t number = memrt__site_here(2, 0);
    clear_frames();
    crew_run(MAKERS, create_many_sites, &number);
    memrt_site_t site = {.struct_size = sizeof(site)};
    ck_assert_int_eq(memrt__site_read(number, &site), MEMRT_OK);
    ck_assert_uint_eq(site.allocations, MADE * (0 + 1 + 2 + 3));
    ck_assert_uint_eq(site.bytes, MADE * (0 + 1 + 2 + 3) * 10);
}

static void count_while_request_fails(uint32_t number, uint64_t nth)
{
    suite_fail_request(nth);
    memrt__site_count(number, 10);
    suite_fail_request(0);
}

TEST(site_counts_stay_exact_without_memory_for_counters)
{
    set_two_frames("without memory", "outer");
    uint32_t number = memrt__site_here(2, 0);
    clear_frames();
    count_while_request_fails(number, 1); /* the record of the thread */
    count_while_request_fails(number, 2); /* the thread's table of counters */
    count_while_request_fails(number, 2); /* the chunk of counters */
    count_while_request_fails(number, 1); /* the chunk of counters again */
    memrt_site_t site = {.struct_size = sizeof(site)};
    ck_assert_int_eq(memrt__site_read(number, &site), MEMRT_OK);
    ck_assert_uint_eq(site.allocations, 4);
    ck_assert_uint_eq(site.bytes, 40);
}

static const char *format_frame_line(memrt_frame_t frame)
{
    static char line[MEMRT__FRAME_LINE];
    memrt__frame_line(frame, line, sizeof(line));
    return line;
}

TEST(frame_is_formatted_as_a_single_line)
{
    memrt_frame_t native = (uintptr_t)dlsym(RTLD_DEFAULT, "gnu_get_libc_version") + 3;
    ck_assert_str_eq(format_frame_line(memrt__frame_new("load", "data.py", 12)),
                     "load at data.py:12");
    ck_assert_str_eq(format_frame_line(memrt__frame_new(NULL, NULL, 0)), "? at ?:0");
    ck_assert_str_eq(format_frame_line(2), "+0x2 in code made at run time");
    ck_assert_str_eq(format_frame_line(0), "?");
    ck_assert_int_eq(strncmp(format_frame_line(native), "gnu_get_libc_version+0x3 in ", 28), 0);
}

TEST(site_of_native_calls_has_only_native_frames)
{
    uint32_t site = memrt__site_here(0, 8);
    memrt_frame_t frames[8];
    size_t count = memrt__site_frames(site, frames, 8);
    ck_assert_uint_ne(site, 0);
    ck_assert_uint_ge(count, 1);
    ck_assert_uint_le(count, 8);
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(read_frame_text(frames[i]).native, 1);
    }
    char text[100];
    ck_assert_uint_eq(memrt__site_text(site, text, sizeof(text)), 0);
    ck_assert_str_eq(text, "");
}

TEST(interpreter_is_not_called_when_no_frames_are_requested)
{
    set_two_frames("inner", "outer");
    queries = 0;
    uint32_t with = memrt__site_here(1, 0);
    ck_assert_uint_ne(with, 0);
    ck_assert_uint_eq(queries, 1);
    ck_assert_uint_eq(memrt__site_here(0, 0), 0);
    ck_assert_uint_ne(memrt__site_here(0, 8), 0);
    ck_assert_uint_eq(queries, 1);
    clear_frames();
}
