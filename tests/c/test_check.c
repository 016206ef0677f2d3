#include "support/suite.h"

#include <string.h>

#include "runtime/base/check.h"
#include "support/child.h"

static void abort_with_arguments(void *context)
{
    memrt__abort("block at %d of %s", 12, (const char *)context);
}

TEST(an_abort_says_who_speaks_and_what_was_wrong)
{
    child_expect_abort(abort_with_arguments, "somebody", "memrt: block at 12 of somebody\n");
}

TEST(an_abort_cuts_a_message_that_is_too_long)
{
    char text[3000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    child_expect_abort(abort_with_arguments, text, "xxx\n");
}
