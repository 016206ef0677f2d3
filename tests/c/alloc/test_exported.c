#include "support/suite.h"

#include <string.h>

#include "runtime/alloc/exported.h"
#include "runtime/config/option_types.h"

typedef struct bad_source {
    const char *source, *why;
} bad_source_t;

static const bad_source_t bad_sources[] = {
    {"./no_such_library.so", "no_such_library"},
    {"./no_such_library.so:table", "no_such_library"},
    {"libc.so.6:no_such_symbol", "the library exports no symbol 'no_such_symbol'"},
    {"libc.so.6", "the library exports no symbol 'memrt_allocator'"},
    {"libc.so.6:", "the library exports no symbol 'memrt_allocator'"},
};

TEST_EACH(missing_library_or_symbol_is_named, sizeof(bad_sources) / sizeof(bad_sources[0]))
{
    char why[160];
    const bad_source_t *bad = &bad_sources[index];
    ck_assert_ptr_null(memrt__exported_allocator(bad->source, why, sizeof(why)));
    ck_assert_msg(strstr(why, bad->why) != NULL, "%s", why);
}

TEST(library_and_symbol_are_found)
{
    char why[160];
    ck_assert_ptr_nonnull(memrt__exported_allocator("libc.so.6:malloc", why, sizeof(why)));
}

TEST(longest_source_is_read_to_its_end)
{
    char source[MEMRT__TEXT_MAX], why[160];
    memset(source, 'x', sizeof(source) - 1);
    source[sizeof(source) - 1] = '\0';
    ck_assert_ptr_null(memrt__exported_allocator(source, why, sizeof(why)));
}
