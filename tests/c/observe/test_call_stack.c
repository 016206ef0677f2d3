/// Tests of call stacks.

#include "support/suite.h"

#include <dlfcn.h>
#include <string.h>

#include "runtime/observe/call_stack.h"

/// Return a call stack of `count` frames, all in a function of the C library.
static memrt__call_stack_t create_libc_stack(size_t count)
{
    memrt__call_stack_t place = {{NULL}};
    char *function = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
    ck_assert_ptr_nonnull(function);
    for (size_t i = 0; i < count; i++) {
        place.frames[i] = function + 1;
    }
    return place;
}

TEST(call_stack_line_has_function_offset_and_object)
{
    memrt__call_stack_t place = create_libc_stack(1);
    char text[256];
    size_t length = memrt__call_stack_text(&place, text, sizeof(text));
    ck_assert_uint_eq(length, strlen(text));
    ck_assert_msg(strncmp(text, "    gnu_get_libc_version+0x1 in libc", 36) == 0, "%s", text);
    ck_assert_ptr_eq(strchr(text, '\n'), &text[length - 1]);
}

TEST(truncated_call_stack_text_ends_with_a_whole_line)
{
    memrt__call_stack_t one = create_libc_stack(1),
                        all = create_libc_stack(MEMRT__CALL_STACK_DEPTH);
    char text[2048];
    size_t line = memrt__call_stack_text(&one, text, sizeof(text));
    ck_assert_uint_eq(memrt__call_stack_text(&all, text, sizeof(text)),
                      MEMRT__CALL_STACK_DEPTH * line);
    ck_assert_uint_eq(memrt__call_stack_text(&all, text, 2 * line + 3), 2 * line);
    ck_assert_uint_eq(strlen(text), 2 * line);
}

TEST(call_stack_text_omits_leading_frames_of_memrt)
{
    memrt__call_stack_t place = create_libc_stack(3);
    char text[512];
    size_t line = memrt__call_stack_text(&place, text, sizeof(text)) / 3;
    place.frames[0] = (void *)(uintptr_t)memrt__call_stack_text;
    ck_assert_uint_eq(memrt__call_stack_text(&place, text, sizeof(text)), 2 * line);
}

#ifdef __GLIBC__
__attribute__((noinline)) static memrt__call_stack_t capture_stack_here(void)
{
    memrt__call_stack_t place;
    memrt__call_stack_record(&place);
    return place;
}

TEST(captured_call_stack_contains_the_caller)
{
    memrt__call_stack_t here = capture_stack_here();
    size_t near = 0;
    for (size_t i = 0; i < MEMRT__CALL_STACK_DEPTH; i++) {
        near += (uintptr_t)here.frames[i] - (uintptr_t)capture_stack_here < 4096;
    }
    ck_assert_uint_ge(near, 1);
}
#endif
