#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/memory_tool.h"
#include "runtime/config/options.h"
#include "support/crew.h"

/// Set one variable (NULL: unset), read all options, and restore the environment.
static void read_with_variable(const char *name, const char *value)
{
    const char *stood = getenv(name);
    char *kept = stood == NULL ? NULL : strdup(stood);
    ck_assert_int_eq(value == NULL ? unsetenv(name) : setenv(name, value, 1), 0);
    memrt__options_read();
    if (kept == NULL) {
        unsetenv(name);
    } else {
        setenv(name, kept, 1);
    }
    free(kept);
}

/// Return the value of an option. Valid until the next call.
static const char *get_option_value(const char *name)
{
    static memrt_option_t row;
    for (size_t i = 0; memrt__options_row(i, &row); i++) {
        if (strcmp(row.name, name) == 0) {
            return row.value;
        }
    }
    return NULL;
}

static size_t count_warnings_with(const char *part)
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
        read_with_variable("MEMRT_TRACK", texts[i].text);
        ck_assert_int_eq(memrt__options.track, texts[i].value);
        ck_assert_str_eq(get_option_value("MEMRT_TRACK"), texts[i].value ? "1" : "0");
        ck_assert_uint_eq(count_warnings_with("MEMRT_TRACK"), 0);
    }
    memrt__options_read();
}

TEST(checking_mode_is_read_and_turns_the_cache_off)
{
    read_with_variable("MEMRT_CHECK", "1");
    ck_assert(memrt__options.check && !memrt__options.cache);
    read_with_variable("MEMRT_CHECK", "0");
    ck_assert(!memrt__options.check);
}

TEST(tools_option_is_off_without_a_tool)
{
    char bytes[8] __attribute__((aligned(8))) = "";
    bool present = memrt__memory_tool_is_present();
    read_with_variable("MEMRT_TOOLS", "1");
    ck_assert_int_eq(memrt__options.tools, present);
    ck_assert_str_eq(get_option_value("MEMRT_TOOLS"), present ? "1" : "0");
    read_with_variable("MEMRT_TOOLS", "0");
    ck_assert(!memrt__options.tools);
    memrt__memory_tool_forbid(bytes, sizeof(bytes)); /* no effect in a test program */
    bytes[0]++;
    memrt__memory_tool_permit(bytes, sizeof(bytes));
    memrt__options_read();
}

TEST(invalid_flag_keeps_default_and_warns_once)
{
    read_with_variable("MEMRT_TRACK", "maybe");
    ck_assert(!memrt__options.track);
    ck_assert_uint_eq(
        count_warnings_with("MEMRT_TRACK must be 0 or 1, got 'maybe': the value is ignored"), 1);
    memrt__options_read();
}

/// Text of a variable, and the option value shown for it; NULL: the text is invalid.
typedef struct text_value {
    const char *name, *text, *shown;
} text_value_t;

static const text_value_t limits[] = {
    {"MEMRT_HUGEPAGES", "off", "off"},
    {"MEMRT_HUGEPAGES", "Advise", "advise"},
    {"MEMRT_HUGEPAGES", "LARGE", "large"},
    {"MEMRT_HUGEPAGES", "", NULL},
    {"MEMRT_HUGEPAGES", "huge", NULL},
    {"MEMRT_HUGEPAGES", "large ", NULL},
    {"MEMRT_HUGEPAGES", "1", NULL},
    {"MEMRT_PEAK", "exact", "exact"},
    {"MEMRT_PEAK", "Bounded", "bounded"},
    {"MEMRT_PEAK", "close", "close"},
    {"MEMRT_PEAK", "1", NULL},
    {"MEMRT_PEAK", "", NULL},
    {"MEMRT_CACHE_LIMIT", "0", "0"},
    {"MEMRT_CACHE_LIMIT", "123", "123"},
    {"MEMRT_CACHE_LIMIT", "4k", "4096"},
    {"MEMRT_CACHE_LIMIT", "2M", "2097152"},
    {"MEMRT_CACHE_LIMIT", "17179869183G", "18446744072635809792"},
    {"MEMRT_CACHE_LIMIT", "NONE", "none"},
    {"MEMRT_CACHE_LIMIT", "", NULL},
    {"MEMRT_CACHE_LIMIT", "never", NULL},
    {"MEMRT_CACHE_LIMIT", "-1", NULL},
    {"MEMRT_CACHE_LIMIT", "1.5G", NULL},
    {"MEMRT_CACHE_LIMIT", "1T", NULL},
    {"MEMRT_CACHE_LIMIT", "1MB", NULL},
    {"MEMRT_CACHE_LIMIT", "17179869184G", NULL},
    {"MEMRT_CACHE_LIMIT", "18446744073709551614", NULL},
    {"MEMRT_CACHE_LIMIT", "18446744073709551615", NULL},
    {"MEMRT_CACHE_LIMIT", "18446744073709551616", NULL},
    {"MEMRT_LIMIT", "2G", "2147483648"},
    {"MEMRT_LIMIT", "80%", "80%"},
    {"MEMRT_LIMIT", "100%", "100%"},
    {"MEMRT_LIMIT", "Auto", "auto"},
    {"MEMRT_LIMIT", "none", "none"},
    {"MEMRT_LIMIT", "0%", NULL},
    {"MEMRT_LIMIT", "much", NULL},
    {"MEMRT_LIMIT", "101%", NULL},
    {"MEMRT_LIMIT", "18446744073709551415", "18446744073709551415"},
    {"MEMRT_LIMIT", "18446744073709551416", NULL},
    {"MEMRT_SOFT_LIMIT", "2G", "2147483648"},
    {"MEMRT_SOFT_LIMIT", "80%", "80%"},
    {"MEMRT_SOFT_LIMIT", "auto", "auto"},
    {"MEMRT_SOFT_LIMIT", "much", NULL},
    {"MEMRT_DECAY", "0", "0"},
    {"MEMRT_DECAY", "86400000", "86400000"},
    {"MEMRT_DECAY", "Never", "never"},
    {"MEMRT_DECAY", "86400001", NULL},
    {"MEMRT_DECAY", "18446744073709551614", NULL},
    {"MEMRT_DECAY", "-1", NULL},
    {"MEMRT_DECAY", "none", NULL},
    {"MEMRT_DECAY", "5s", NULL},
    {"MEMRT_DECAY", " 5", NULL},
    {"MEMRT_DECAY", "", NULL},
};
#define LIMITS (sizeof(limits) / sizeof(limits[0]))

static void expect_read_or_warned_of(const text_value_t *limit)
{
    char usual[32];
    read_with_variable(limit->name, NULL);
    strcpy(usual, get_option_value(limit->name));
    read_with_variable(limit->name, limit->text);
    ck_assert_str_eq(get_option_value(limit->name), limit->shown == NULL ? usual : limit->shown);
    ck_assert_uint_eq(count_warnings_with("must be"), limit->shown == NULL);
    ck_assert_uint_eq(count_warnings_with(limit->name), limit->shown == NULL);
    memrt__options_read();
}

TEST_EACH(environment_sets_limits_and_warns_of_invalid_text, LIMITS)
{
    expect_read_or_warned_of(&limits[index]);
}

static const text_value_t at_start[] = {
    {"MEMRT_LEAKS", "off", "off"},
    {"MEMRT_LEAKS", "Report", "report"},
    {"MEMRT_LEAKS", "FAIL", "fail"},
    {"MEMRT_LEAKS", "1", NULL},
    {"MEMRT_LEAKS", "", NULL},
    {"MEMRT_TRACK_FRAMES", "0", "0"},
    {"MEMRT_TRACK_FRAMES", "128", "128"},
    {"MEMRT_TRACK_FRAMES", "129", NULL},
    {"MEMRT_TRACK_NATIVE", "8", "8"},
    {"MEMRT_TRACK_NATIVE", "-1", NULL},
    {"MEMRT_TRACK_SAMPLE", "0", "0"},
    {"MEMRT_TRACK_SAMPLE", "512K", "524288"},
    {"MEMRT_TRACK_SAMPLE", "none", NULL},
    {"MEMRT_GUARD_SAMPLE", "64M", "67108864"},
    {"MEMRT_GUARD_SAMPLE", "-1", NULL},
    {"MEMRT_TRACK_SAMPLE", "half", NULL},
    {"MEMRT_DUMP_ON_OOM", "/var/dumps", "/var/dumps"},
    {"MEMRT_DUMP_ON_OOM", "none", "none"},
    {"MEMRT_DUMP_ON_OOM", "", NULL},
    {"MEMRT_LOG_OPERATIONS", "all", "all"},
    {"MEMRT_LOG_OPERATIONS", "later", "later"},
    {"MEMRT_LOG_OPERATIONS", "input table", "input table"},
    {"MEMRT_LOG_OPERATIONS", "0x7f10aF", "0x7f10aF"},
    {"MEMRT_LOG_OPERATIONS", "0x0123456789abcdef", "0x0123456789abcdef"},
    {"MEMRT_LOG_OPERATIONS", "0x", NULL},
    {"MEMRT_LOG_OPERATIONS", "0x12g", NULL},
    {"MEMRT_LOG_OPERATIONS", "0x00123456789abcdef", NULL},
    {"MEMRT_LOG_OPERATIONS", "", NULL},
    {"MEMRT_LOG_OPERATIONS", "0123456789012345678901234567890123456789012345678901234567890123",
     NULL},
    {"MEMRT_ALLOCATOR", "./arena.so:symbol", "./arena.so:symbol"},
    {"MEMRT_ALLOCATOR", "none", "none"},
    {"MEMRT_ALLOCATOR", "", NULL},
};

TEST_EACH(environment_sets_startup_options_or_warns, sizeof(at_start) / sizeof(at_start[0]))
{
    expect_read_or_warned_of(&at_start[index]);
}

TEST_EACH(option_set_accepts_the_same_texts_as_the_environment, LIMITS)
{
    const text_value_t *limit = &limits[index];
    char stood[32], why[200] = "", checked[200] = "";
    strcpy(stood, get_option_value(limit->name));
    memrt_status_t status = limit->shown == NULL ? MEMRT_EINVAL : MEMRT_OK;
    ck_assert_int_eq(memrt__options_check(limit->name, limit->text, checked, 200), status);
    ck_assert_str_eq(get_option_value(limit->name), stood);
    ck_assert_int_eq(memrt__options_set(limit->name, limit->text, why, 200), status);
    ck_assert_str_eq(get_option_value(limit->name), limit->shown == NULL ? stood : limit->shown);
    ck_assert_str_eq(why, checked);
    if (limit->shown == NULL) {
        char begin[100];
        snprintf(begin, 100, "%s must be ", limit->name);
        ck_assert_int_eq(strncmp(why, begin, strlen(begin)), 0);
        snprintf(begin, 100, ", got '%s': the value is refused", limit->text);
        ck_assert_ptr_nonnull(strstr(why, begin));
    }
    memrt__options_read();
}

TEST(option_short_name_is_accepted_and_used_in_messages)
{
    char why[200];
    ck_assert_int_eq(memrt__options_set("cache_limit", "5M", why, 200), MEMRT_OK);
    ck_assert_str_eq(get_option_value("MEMRT_CACHE_LIMIT"), "5242880");
    ck_assert_int_eq(memrt__options_set("decay", "soon", why, 200), MEMRT_EINVAL);
    ck_assert_str_eq(
        why, "decay must be milliseconds from 0 to 86400000, or never, got 'soon': the value is "
             "refused");
    memrt__options_read();
}

TEST(startup_options_can_be_checked_but_not_set_later)
{
    static const char *const fixed[] = {"MEMRT_CHECK", "track", "MEMRT_ALIGNMENT", "cache"};
    for (size_t i = 0; i < 4; i++) {
        char why[200];
        ck_assert_int_eq(memrt__options_check(fixed[i], "1", why, 200), MEMRT_OK);
        ck_assert_int_eq(memrt__options_set(fixed[i], "1", why, 200), MEMRT_EINVAL);
        ck_assert_ptr_nonnull(strstr(why, "cannot change in a running process: set MEMRT_"));
    }
}

TEST(log_is_settable_only_in_a_process_that_started_with_the_log)
{
    char why[200];
    read_with_variable("MEMRT_LOG_OPERATIONS", NULL);
    ck_assert(!memrt__options.log);
    ck_assert_int_eq(memrt__options_set("log_operations", "all", why, 200), MEMRT_EINVAL);
    ck_assert_str_eq(why, "MEMRT_LOG_OPERATIONS cannot change in a running process: set "
                          "MEMRT_LOG_OPERATIONS in the environment");
    read_with_variable("MEMRT_LOG_OPERATIONS", "later");
    ck_assert(memrt__options.log);
    ck_assert_int_eq(memrt__options_set("log_operations", "none", why, 200), MEMRT_OK);
    ck_assert_int_eq(memrt__options_set("log_operations", "table", why, 200), MEMRT_OK);
    ck_assert_str_eq(get_option_value("MEMRT_LOG_OPERATIONS"), "table");
    ck_assert_int_eq(memrt__options_set("log_operations", "0x", why, 200), MEMRT_EINVAL);
    memrt__options_read();
}

TEST(unknown_option_is_refused_and_message_is_cut_to_buffer)
{
    char why[200];
    ck_assert_int_eq(memrt__options_set("MEMRT_DEKAY", "5", why, 200), MEMRT_EINVAL);
    ck_assert_str_eq(why, "MEMRT_DEKAY is not an option of memrt and is refused: `python -m memrt "
                          "info` lists all options");
    ck_assert_int_eq(memrt__options_set("MEMRT_DEKAY", "5", why, 12), MEMRT_EINVAL);
    ck_assert_str_eq(why, "MEMRT_DEKAY");
    ck_assert_int_eq(memrt__options_set("", "5", NULL, 0), MEMRT_EINVAL);
    ck_assert_int_eq(memrt__options_check("MEMRT_", "5", NULL, 0), MEMRT_EINVAL);
}

TEST(alignment_option_is_read_as_a_number)
{
    read_with_variable("MEMRT_ALIGNMENT", "4096");
    ck_assert_uint_eq(memrt__options.alignment, 4096);
    ck_assert_str_eq(get_option_value("MEMRT_ALIGNMENT"), "4096");
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

TEST_EACH(invalid_alignment_keeps_default_and_warns,
          sizeof(bad_alignments) / sizeof(bad_alignments[0]))
{
    read_with_variable("MEMRT_ALIGNMENT", bad_alignments[index]);
    ck_assert_uint_eq(memrt__options.alignment, 64);
    ck_assert_uint_eq(count_warnings_with("MEMRT_ALIGNMENT must be "), 1);
    memrt__options_read();
}

TEST(unknown_option_in_environment_warns_once)
{
    read_with_variable("MEMRT_CHEK", "1");
    ck_assert_uint_eq(count_warnings_with("MEMRT_CHEK is not an option"), 1);
    memrt__options_read();
    ck_assert_uint_eq(count_warnings_with("MEMRT_CHEK"), 0);
}

TEST(prefix_or_extension_of_option_name_is_unknown)
{
    read_with_variable("MEMRT_CHECKING", "1");
    ck_assert_uint_eq(count_warnings_with("MEMRT_CHECKING is not an option"), 1);
    read_with_variable("MEMRT_CHEC", "1");
    ck_assert_uint_eq(count_warnings_with("MEMRT_CHEC is not an option"), 1);
    memrt__options_read();
}

TEST(long_names_and_values_are_cut_in_warnings)
{
    char value[2000];
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    read_with_variable("MEMRT_ALIGNMENT", value);
    ck_assert_uint_eq(count_warnings_with("must be a power of two from 1 to 1073741824, got 'vvv"),
                      1);
    memcpy(value, "MEMRT_", 6);
    read_with_variable(value, "1");
    ck_assert_uint_eq(count_warnings_with("vvv is not an option"), 1);
    memrt__options_read();
}

TEST(forty_unknown_options_give_16_warnings)
{
    char name[32];
    memrt__options_read();
    size_t before = count_warnings_with("");
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "MEMRT_NONE_%d", i);
        setenv(name, "1", 1);
    }
    memrt__options_read();
    size_t count = count_warnings_with("MEMRT_NONE_"), all = count_warnings_with("");
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "MEMRT_NONE_%d", i);
        unsetenv(name);
    }
    memrt__options_read();
    ck_assert_uint_eq(count, 16 - before);
    ck_assert_uint_eq(all, 16);
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

static bool is_expected_value(const memrt_option_t *row)
{
    bool decay = strcmp(row->name, "MEMRT_DECAY") == 0;
    return !decay || strcmp(row->value, "never") == 0 || strcmp(row->value, "7") == 0;
}

static void read_and_set_rows(size_t index, void *context)
{
    (void)context;
    memrt_option_t row;
    for (int round = 0; round < 200; round++) {
        const char *value = round % 2 == 0 ? "7" : "never";
        REQUIRE(index != 0 || memrt__options_set("MEMRT_DECAY", value, NULL, 0) == MEMRT_OK);
        for (size_t i = 0; memrt__options_row(i, &row); i++) {
            REQUIRE(row.value[0] != '\0' && is_expected_value(&row));
        }
    }
}

TEST(threads_can_read_and_set_options_at_the_same_time)
{
    suite_set_decay(7);
    crew_run(4, read_and_set_rows, NULL);
}

TEST(warning_list_holds_16_and_next_read_clears_the_list)
{
    size_t before = count_warnings_with("");
    for (int i = 0; i < 20; i++) {
        memrt__options_warn("no such luck");
    }
    ck_assert_uint_eq(count_warnings_with("no such luck"), 16 - before);
    memrt__options_read();
    ck_assert_uint_eq(count_warnings_with("no such luck"), 0);
}
