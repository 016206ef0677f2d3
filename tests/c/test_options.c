#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/options.h"
#include "support/crew.h"

/// Set one variable, read all options, and leave the environment as it was.
static void read_with(const char *name, const char *value)
{
    const char *stood = getenv(name);
    char *kept = stood == NULL ? NULL : strdup(stood);
    ck_assert_int_eq(setenv(name, value, 1), 0);
    memrt__options_read();
    if (kept == NULL) {
        unsetenv(name);
    } else {
        setenv(name, kept, 1);
    }
    free(kept);
}

static const char *value_of(const char *name)
{
    memrt_option_t row;
    for (size_t i = 0; memrt__options_row(i, &row); i++) {
        if (strcmp(row.name, name) == 0) {
            return row.value;
        }
    }
    return NULL;
}

static size_t warnings_with(const char *part)
{
    size_t count = 0;
    for (size_t i = 0; memrt__options_warning(i) != NULL; i++) {
        count += strstr(memrt__options_warning(i), part) != NULL;
    }
    return count;
}

typedef struct flag_text {
    const char *text;
    bool value;
} flag_text_t;

TEST(flags_are_read_in_every_spelling)
{
    static const flag_text_t texts[] = {{"1", true},    {"0", false},     {"on", true},
                                        {"OFF", false}, {"Yes", true},    {"no", false},
                                        {"TRUE", true}, {"false", false}, {"", false}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        read_with("MEMRT_HUGEPAGES", texts[i].text);
        ck_assert_int_eq(memrt__options.huge_pages, texts[i].value);
        ck_assert_str_eq(value_of("MEMRT_HUGEPAGES"), texts[i].value ? "1" : "0");
        ck_assert_uint_eq(warnings_with("MEMRT_HUGEPAGES"), 0);
    }
    memrt__options_read();
    ck_assert(memrt__options.huge_pages);
}

TEST(a_flag_that_is_none_keeps_the_default_and_warns_once_by_name)
{
    read_with("MEMRT_HUGEPAGES", "maybe");
    ck_assert(memrt__options.huge_pages);
    ck_assert_uint_eq(warnings_with("MEMRT_HUGEPAGES=maybe is ignored: it must be 0 or 1"), 1);
    memrt__options_read();
}

TEST(an_alignment_is_read_as_a_number)
{
    read_with("MEMRT_ALIGNMENT", "4096");
    ck_assert_uint_eq(memrt__options.alignment, 4096);
    ck_assert_str_eq(value_of("MEMRT_ALIGNMENT"), "4096");
    memrt__options_read();
    ck_assert_uint_eq(memrt__options.alignment, 64);
}

static const char *const bad_alignments[] = {"0",
                                             "3",
                                             "-64",
                                             "",
                                             "64k",
                                             "x",
                                             "0x40",
                                             "2147483648",
                                             "18446744073709551616",
                                             "99999999999999999999999999"};

TEST_EACH(an_alignment_that_is_none_keeps_the_default_and_warns,
          sizeof(bad_alignments) / sizeof(bad_alignments[0]))
{
    read_with("MEMRT_ALIGNMENT", bad_alignments[index]);
    ck_assert_uint_eq(memrt__options.alignment, 64);
    ck_assert_uint_eq(warnings_with("MEMRT_ALIGNMENT="), 1);
    memrt__options_read();
}

TEST(an_unknown_option_warns_once_by_name)
{
    read_with("MEMRT_CHEK", "1");
    ck_assert_uint_eq(warnings_with("MEMRT_CHEK is not an option"), 1);
    memrt__options_read();
    ck_assert_uint_eq(warnings_with("MEMRT_CHEK"), 0);
}

TEST(a_name_that_an_option_begins_with_is_unknown)
{
    read_with("MEMRT_CHECKING", "1");
    ck_assert_uint_eq(warnings_with("MEMRT_CHECKING is not an option"), 1);
    read_with("MEMRT_CHEC", "1");
    ck_assert_uint_eq(warnings_with("MEMRT_CHEC is not an option"), 1);
    memrt__options_read();
}

TEST(long_names_and_values_are_cut_in_warnings)
{
    char value[2000];
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    read_with("MEMRT_ALIGNMENT", value);
    ck_assert_uint_eq(warnings_with("it must be a power of two from 1 to 1073741824"), 1);
    memcpy(value, "MEMRT_", 6);
    read_with(value, "1");
    ck_assert_uint_eq(warnings_with("vvv is not an option"), 1);
    memrt__options_read();
}

TEST(more_warnings_than_there_is_room_for_are_dropped)
{
    char name[32];
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "MEMRT_NONE_%d", i);
        setenv(name, "1", 1);
    }
    memrt__options_read();
    size_t count = warnings_with("MEMRT_NONE_");
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "MEMRT_NONE_%d", i);
        unsetenv(name);
    }
    memrt__options_read();
    ck_assert(count > 0 && count <= 40);
}

TEST(every_option_has_a_name_a_value_and_help)
{
    memrt_option_t row;
    size_t rows = 0;
    while (memrt__options_row(rows, &row)) {
        ck_assert_int_eq(strncmp(row.name, "MEMRT_", 6), 0);
        ck_assert_str_ne(row.value, "");
        ck_assert_ptr_nonnull(strstr(row.help, "default"));
        rows++;
    }
    ck_assert_uint_gt(rows, 0);
    ck_assert(!memrt__options_row(rows + 5, &row));
    ck_assert(!memrt__options_row(SIZE_MAX, &row));
}

static void read_rows(size_t index, void *context)
{
    (void)index, (void)context;
    memrt_option_t row;
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; memrt__options_row(i, &row); i++) {
            REQUIRE(row.value[0] != '\0');
        }
    }
}

TEST(threads_may_read_the_rows_at_the_same_time)
{
    crew_run(4, read_rows, NULL);
}
