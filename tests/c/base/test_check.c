#include "support/suite.h"

#include <string.h>
#include <unistd.h>

#include "runtime/base/check.h"
#include "support/child.h"

static void abort_with_arguments(void *context)
{
    memrt__abort("block at %d of %s", 12, (const char *)context);
}

TEST(abort_message_has_memrt_prefix_and_arguments)
{
    child_expect_abort(abort_with_arguments, "table", "memrt: block at 12 of table\n");
}

static void write_one_frame(int file)
{
    static const char text[] = "\n    fill at model.py:7";
    (void)!write(file, text, sizeof(text) - 1);
}

static void abort_with_frames(void *context)
{
    api->set_write_frames(write_one_frame);
    abort_with_arguments(context);
}

TEST(interpreter_calls_follow_the_abort_message)
{
    child_expect_abort(abort_with_frames, "heap",
                       "memrt: block at 12 of heap\n  called at\n    fill at model.py:7\n");
}

TEST(abort_truncates_long_message)
{
    char text[3000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    child_expect_abort(abort_with_arguments, text, "xxx\n");
}

#if MEMRT_DEBUG

static void break_invariant(void *context)
{
    const size_t *size = context;
    MEMRT__ASSERT(*size != 0);
}

TEST(broken_invariant_aborts_with_its_condition)
{
    size_t size = 0;
    child_expect_abort(break_invariant, &size, "broken invariant: *size != 0\n");
}

TEST(false_condition_is_recorded_for_the_message)
{
    size_t size = 0;
    ck_assert(!MEMRT__HOLDS(size != 0));
    ck_assert(MEMRT__HOLDS(size == 0));
    ck_assert_ptr_nonnull(strstr(memrt__invariant_broken(), "size != 0"));
}

#endif
