#include "support/suite.h"

#include <dlfcn.h>
#include <string.h>

#include "runtime/base/place.h"

/// A place that was led to by a function of the C library, `count` times.
static memrt__place_t place_in_libc(size_t count)
{
    memrt__place_t place = {{NULL}};
    char *function = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
    ck_assert_ptr_nonnull(function);
    for (size_t i = 0; i < count; i++) {
        place.frames[i] = function + 1;
    }
    return place;
}

TEST(a_call_is_told_by_function_offset_and_object)
{
    memrt__place_t place = place_in_libc(1);
    char text[256];
    size_t length = memrt__place_text(&place, text, sizeof(text));
    ck_assert_uint_eq(length, strlen(text));
    ck_assert_msg(strncmp(text, "    gnu_get_libc_version+0x1 in libc", 36) == 0, "%s", text);
    ck_assert_ptr_eq(strchr(text, '\n'), &text[length - 1]);
}

TEST(text_that_is_cut_ends_with_a_whole_line)
{
    memrt__place_t one = place_in_libc(1), all = place_in_libc(MEMRT__PLACE_DEPTH);
    char text[2048];
    size_t line = memrt__place_text(&one, text, sizeof(text));
    ck_assert_uint_eq(memrt__place_text(&all, text, sizeof(text)), MEMRT__PLACE_DEPTH * line);
    ck_assert_uint_eq(memrt__place_text(&all, text, 2 * line + 3), 2 * line);
    ck_assert_uint_eq(strlen(text), 2 * line);
}

TEST(calls_of_the_library_itself_are_left_out_as_long_as_they_come_first)
{
    memrt__place_t place = place_in_libc(3);
    char text[512];
    size_t line = memrt__place_text(&place, text, sizeof(text)) / 3;
    place.frames[0] = (void *)(uintptr_t)memrt__place_text;
    ck_assert_uint_eq(memrt__place_text(&place, text, sizeof(text)), 2 * line);
}

#ifdef __GLIBC__
static memrt__place_t taken_in_here(void)
{
    memrt__place_t place;
    memrt__place_take(&place);
    return place;
}

TEST(a_place_that_is_taken_leads_to_who_took_it)
{
    memrt__place_t here = taken_in_here();
    size_t near = 0;
    for (size_t i = 0; i < MEMRT__PLACE_DEPTH; i++) {
        near += (uintptr_t)here.frames[i] - (uintptr_t)taken_in_here < 4096;
    }
    ck_assert_uint_ge(near, 1);
}
#endif
