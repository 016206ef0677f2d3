#include "runtime/base/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <memrt/meminfo.h>
#include <memrt/tracking.h>

#include "runtime/base/atomics.h"
#include "runtime/base/compiler.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"
#include "runtime/base/size.h"

#define DEFAULTS                                                                                   \
    {                                                                                              \
        .check = false,                                                                            \
        .track = false,                                                                            \
        .track_frames = 16,                                                                        \
        .cache = !MEMRT__ADDRESS_SANITIZER,                                                        \
        .alignment = MEMRT_ALIGN_MIN,                                                              \
        .huge_pages = MEMRT__HUGE_LARGE,                                                           \
        .cache_limit = SIZE_MAX,                                                                   \
        .decay = 500,                                                                              \
        .exact_peak = 0,                                                                           \
        .cuda_sync = 1,                                                                            \
        .cuda_driver = "libcuda.so.1",                                                             \
    }

memrt__options_t memrt__options = DEFAULTS;

/// A value's type: how it is read and how it is shown. `read` returns false for a bad value.
typedef struct option_type {
    bool (*read)(const char *text, size_t *value);
    void (*show)(size_t value, char *text, size_t length);
    const char *expects;
} option_type_t;

typedef struct option_row {
    const char *name;
    const option_type_t *type;
    bool *flag;     ///< where the value is, fixed after the start; NULL: in `number`
    size_t *number; ///< atomic, relaxed
    bool settable;  ///< later than at the start
    const char *help;
} option_row_t;

/// Index of `text` among `words`; `count` for none.
static size_t word_in(const char *const *words, size_t count, const char *text)
{
    size_t index = 0;
    while (index < count && strcasecmp(text, words[index]) != 0) {
        index++;
    }
    return index;
}

static bool read_flag(const char *text, size_t *value)
{
    static const char *const words[] = {"0", "1", "off", "on", "no", "yes", "false", "true", ""};
    size_t index = word_in(words, 9, text);
    *value = index % 2;
    return index < 9;
}

static void show_number(size_t value, char *text, size_t length)
{
    snprintf(text, length, "%zu", value);
}

static const char *const huge_words[] = {
    [MEMRT__HUGE_OFF] = "off", [MEMRT__HUGE_ADVISE] = "advise", [MEMRT__HUGE_LARGE] = "large"};
#define HUGE_WORDS (sizeof(huge_words) / sizeof(huge_words[0]))

static bool read_huge(const char *text, size_t *value)
{
    *value = word_in(huge_words, HUGE_WORDS, text);
    return *value < HUGE_WORDS;
}

static const char *const leaks_words[] = {
    [MEMRT__LEAKS_OFF] = "off", [MEMRT__LEAKS_REPORT] = "report", [MEMRT__LEAKS_FAIL] = "fail"};
#define LEAKS_WORDS (sizeof(leaks_words) / sizeof(leaks_words[0]))

static bool read_leaks(const char *text, size_t *value)
{
    *value = word_in(leaks_words, LEAKS_WORDS, text);
    return *value < LEAKS_WORDS;
}

static void show_leaks(size_t value, char *text, size_t length)
{
    snprintf(text, length, "%s", leaks_words[value]);
}

static void show_huge(size_t value, char *text, size_t length)
{
    snprintf(text, length, "%s", huge_words[value]);
}

/// A whole number in decimal digits; `end` is what follows.
static bool read_digits(const char *text, char **end, size_t *value)
{
    if (!isdigit((unsigned char)text[0])) {
        return false;
    }
    errno = 0;
    *value = strtoull(text, end, 10);
    return errno == 0;
}

/// No more than `most`, and nothing follows.
static bool read_number(const char *text, size_t most, size_t *value)
{
    char *end;
    return read_digits(text, &end, value) && *end == '\0' && *value <= most;
}

static const char *const peak_words[] = {"bounded", "exact"};
#define PEAK_WORDS (sizeof(peak_words) / sizeof(peak_words[0]))

static bool read_peak(const char *text, size_t *value)
{
    *value = word_in(peak_words, PEAK_WORDS, text);
    return *value < PEAK_WORDS;
}

static void show_peak(size_t value, char *text, size_t length)
{
    snprintf(text, length, "%s", peak_words[value]);
}

static bool read_alignment(const char *text, size_t *value)
{
    return read_number(text, MEMRT_ALIGN_MAX, value) && memrt__is_power_of_two(*value);
}

/// A word that stands for no bound.
static bool is_boundless(const char *text, const char *word, size_t *value)
{
    *value = SIZE_MAX;
    return strcasecmp(text, word) == 0;
}

static void show_bound(size_t value, const char *word, char *text, size_t length)
{
    if (value == SIZE_MAX) {
        snprintf(text, length, "%s", word);
    } else {
        show_number(value, text, length);
    }
}

/// A whole number of bytes, with K, M or G for 1024, 1024² or 1024³ of them; or "none".
static bool read_bytes(const char *text, size_t *value)
{
    if (is_boundless(text, "none", value)) {
        return true;
    }
    char *end;
    size_t unit = 1;
    if (!read_digits(text, &end, value)) {
        return false;
    }
    const char *units = "KMG";
    const char *found = *end == '\0' ? NULL : strchr(units, toupper((unsigned char)*end));
    if (found != NULL) {
        unit = (size_t)1 << (10 * (found - units + 1));
        end++;
    }
    return *end == '\0' && memrt__size_mul(*value, unit, value) && *value < MEMRT__INHERIT;
}

static void show_bytes(size_t value, char *text, size_t length)
{
    show_bound(value, "none", text, length);
}

#define DAY_MS ((size_t)24 * 3600 * 1000)

static bool read_decay(const char *text, size_t *value)
{
    return is_boundless(text, "never", value) || read_number(text, DAY_MS, value);
}

static void show_decay(size_t value, char *text, size_t length)
{
    show_bound(value, "never", text, length);
}

static const option_type_t flag_type = {read_flag, show_number, "0 or 1"};
static const option_type_t alignment_type = {read_alignment, show_number,
                                             "a power of two from 1 to 1073741824"};
static const option_type_t huge_type = {read_huge, show_huge, "off, advise or large"};
static const option_type_t leaks_type = {read_leaks, show_leaks, "off, report or fail"};
static const option_type_t bytes_type = {read_bytes, show_bytes,
                                         "a number of bytes like 268435456 or 256M, or none"};
static bool read_frames(const char *text, size_t *value)
{
    return read_number(text, MEMRT_FRAMES_MAX, value);
}

static bool read_sample(const char *text, size_t *value)
{
    return read_bytes(text, value) && *value != SIZE_MAX;
}

static const option_type_t frames_type = {read_frames, show_number, "a number from 0 to 128"};
static const option_type_t sample_type = {read_sample, show_number,
                                          "a number of bytes like 524288 or 512K"};
static const option_type_t decay_type = {read_decay, show_decay,
                                         "milliseconds from 0 to 86400000, or never"};
static const option_type_t peak_type = {read_peak, show_peak, "bounded or exact"};

/// Of a text the value is its length.
static bool read_text(const char *text, size_t *value)
{
    *value = strnlen(text, MEMRT__TEXT_MAX);
    return *value != 0 && *value < MEMRT__TEXT_MAX;
}

static const option_type_t file_type = {read_text, show_number, "the name of a file"};

static const option_row_t rows[] = {
    {"MEMRT_CHECK", &flag_type, &memrt__options.check, NULL, false,
     "1: verify every reference and fence every block, abort with a message on misuse; default 0"},
    {"MEMRT_TRACK", &flag_type, &memrt__options.track, NULL, false,
     "1: list live buffers from the start of the process; default 0"},
    {"MEMRT_LEAKS", &leaks_type, NULL, &memrt__options.leaks, false,
     "report: track, and list on stderr what is live at the exit; fail: exit with 23 then, too; "
     "default off"},
    {"MEMRT_TRACK_FRAMES", &frames_type, NULL, &memrt__options.track_frames, false,
     "most calls of an interpreter to record of each tracked birth, up to 128; default 16"},
    {"MEMRT_TRACK_NATIVE", &frames_type, NULL, &memrt__options.track_native, false,
     "most calls of native code to record of each tracked birth, up to 128; default 0"},
    {"MEMRT_TRACK_SAMPLE", &sample_type, NULL, &memrt__options.track_sample, false,
     "list one birth in about so many bytes instead of all; K, M, G; default 0: all"},
    {"MEMRT_ALIGNMENT", &alignment_type, NULL, &memrt__options.alignment, false,
     "alignment in bytes of data whose policy names none, a power of two; default 64"},
    {"MEMRT_CACHE", &flag_type, &memrt__options.cache, NULL, false,
     "0: keep no freed memory for reuse; default 1, under AddressSanitizer and with MEMRT_CHECK 0"},
    {"MEMRT_CACHE_LIMIT", &bytes_type, NULL, &memrt__options.cache_limit, true,
     "most bytes of freed blocks above 1 MiB to keep for reuse; K, M, G; default none"},
    {"MEMRT_DECAY", &decay_type, NULL, &memrt__options.decay, true,
     "milliseconds after which unused memory goes back to the system, or never; default 500"},
    {"MEMRT_HUGEPAGES", &huge_type, NULL, &memrt__options.huge_pages, true,
     "off, advise: wherever one fits, large: on blocks from 4 MiB on; default large"},
    {"MEMRT_PEAK", &peak_type, NULL, &memrt__options.exact_peak, true,
     "bounded: within what peak_error says, exact: all threads tell of each block; default "
     "bounded"},
    {"MEMRT_SHARE", &flag_type, NULL, &memrt__options.share, true,
     "1: other processes of the user may read the statistics, `python -m memrt top`; default 0"},
    {"MEMRT_CUDA_SYNC", &flag_type, NULL, &memrt__options.cuda_sync, true,
     "0: arrays are exchanged with CUDA libraries without regard to streams; default 1"},
    {"MEMRT_CUDA_DRIVER", &file_type, NULL, NULL, true,
     "library that is loaded as the CUDA driver at first use; default libcuda.so.1"},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

#define PREFIX "MEMRT_"
#define PREFIX_LENGTH (sizeof(PREFIX) - 1)

/// The option of a name as the environment has it, or without prefix in small letters. NULL: none.
static const option_row_t *find_row(const char *name)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (strcmp(name, rows[i].name) == 0 ||
            strcasecmp(name, rows[i].name + PREFIX_LENGTH) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

/// Whether it is the one that is a text, written under the lock of rank OPTIONS.
static bool is_text(const option_row_t *row)
{
    return row->type == &file_type;
}

static size_t value_of(const option_row_t *row)
{
    if (is_text(row)) {
        return 0;
    }
    return row->flag != NULL ? *row->flag : memrt__load_relaxed(row->number);
}

/// `text` is what `value` was read from.
static void put(const option_row_t *row, size_t value, const char *text)
{
    if (is_text(row)) {
        memcpy(memrt__options.cuda_driver, text, value + 1);
    } else if (row->flag != NULL) {
        *row->flag = value != 0;
    } else {
        memrt__store_relaxed(row->number, value);
    }
}

#define WARNINGS_MAX 16
static char warnings[WARNINGS_MAX][256];
static size_t warning_count;

static char *next_warning(void)
{
    return warning_count < WARNINGS_MAX ? warnings[warning_count++] : NULL;
}

/// Say that a value is none.
static void say_what_it_must_be(const option_row_t *row, const char *name, const char *text,
                                const char *becomes, char *why, size_t length)
{
    snprintf(why, length, "%.40s=%.60s is %s: it must be %s", name, text, becomes,
             row->type->expects);
}

static void say_that_it_is_unknown(const char *name, size_t name_length, const char *becomes,
                                   char *why, size_t length)
{
    snprintf(why, length,
             "%.*s is not an option of memrt and is %s; `python -m memrt info` lists them",
             (int)memrt__size_min(name_length, 80), name, becomes);
}

static void read_row(const option_row_t *row)
{
    const char *text = memrt__os_environment(row->name);
    size_t value;
    if (text == NULL) {
        return;
    }
    if (row->type->read(text, &value)) {
        put(row, value, text);
        return;
    }
    char *warning = next_warning();
    if (warning != NULL) {
        say_what_it_must_be(row, row->name, text, "ignored", warning, sizeof(warnings[0]));
    }
}

static bool is_known(const char *name, size_t length)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (strlen(rows[i].name) == length && strncmp(rows[i].name, name, length) == 0) {
            return true;
        }
    }
    return false;
}

static void warn_of_unknown_names(void)
{
    const char *entry;
    for (size_t i = 0; (entry = memrt__os_environment_row(i)) != NULL; i++) {
        size_t length = strcspn(entry, "=");
        if (strncmp(entry, PREFIX, PREFIX_LENGTH) != 0 || is_known(entry, length)) {
            continue;
        }
        char *warning = next_warning();
        if (warning != NULL) {
            say_that_it_is_unknown(entry, length, "ignored", warning, sizeof(warnings[0]));
        }
    }
}

void memrt__options_warn(const char *why)
{
    char *warning = next_warning();
    if (warning != NULL) {
        snprintf(warning, sizeof(warnings[0]), "%s", why);
    }
}

void memrt__options_read(void)
{
    memrt__options = (memrt__options_t)DEFAULTS;
    warning_count = 0;
    for (size_t i = 0; i < ROWS; i++) {
        read_row(&rows[i]);
    }
    memrt__options.cache &= !memrt__options.check; /* what is freed must not come back at once */
    warn_of_unknown_names();
}

static void fill_row(const option_row_t *row, size_t value, memrt_option_t *out)
{
    out->name = row->name;
    out->help = row->help;
    if (is_text(row)) {
        char text[MEMRT__TEXT_MAX];
        memrt__options_text(&memrt__options.cuda_driver, text);
        snprintf(out->value, sizeof(out->value), "%.31s", text); /* cut to the room there is */
    } else {
        row->type->show(value, out->value, sizeof(out->value));
    }
}

bool memrt__options_row(size_t index, memrt_option_t *out)
{
    if (index >= ROWS) {
        return false;
    }
    fill_row(&rows[index], value_of(&rows[index]), out);
    return true;
}

void memrt__options_text(const char (*option)[MEMRT__TEXT_MAX], char *out)
{
    memrt__lock(MEMRT__RANK_OPTIONS);
    memcpy(out, *option, MEMRT__TEXT_MAX);
    memrt__unlock(MEMRT__RANK_OPTIONS);
}

const char *memrt__options_warning(size_t index)
{
    return index < warning_count ? warnings[index] : NULL;
}

static memrt_status_t read_value(const option_row_t *row, const char *name, const char *text,
                                 size_t *value, char *why, size_t length)
{
    if (row == NULL) {
        say_that_it_is_unknown(name, strlen(name), "refused", why, length);
        return MEMRT_EINVAL;
    }
    if (!row->type->read(text, value)) {
        say_what_it_must_be(row, name, text, "refused", why, length);
        return MEMRT_EINVAL;
    }
    return MEMRT_OK;
}

memrt_status_t memrt__options_check(const char *name, const char *value, char *why, size_t length)
{
    size_t ignored;
    return read_value(find_row(name), name, value, &ignored, why, length);
}

memrt_status_t memrt__options_set(const char *name, const char *value, char *why, size_t length)
{
    const option_row_t *row = find_row(name);
    size_t number;
    if (row != NULL && !row->settable) {
        snprintf(why, length, "%s cannot change in a running process: set it in the environment",
                 row->name);
        return MEMRT_EINVAL;
    }
    memrt_status_t status = read_value(row, name, value, &number, why, length);
    if (status == MEMRT_OK) {
        put(row, number, value);
    }
    return status;
}

/// An option that a policy may set for itself, and where it stands in memrt__limits_t.
typedef struct limit {
    const char *name;
    size_t offset;
} limit_t;

static const limit_t limits_known[] = {
    {"MEMRT_CACHE_LIMIT", offsetof(memrt__limits_t, cache_limit)},
    {"MEMRT_DECAY", offsetof(memrt__limits_t, decay)},
    {"MEMRT_HUGEPAGES", offsetof(memrt__limits_t, huge_pages)},
};
#define LIMITS (sizeof(limits_known) / sizeof(limits_known[0]))

bool memrt__limits_row(const memrt__limits_t *limits, size_t index, memrt_option_t *out)
{
    for (size_t i = 0; i < LIMITS; i++) {
        size_t value = *(const size_t *)((const char *)limits + limits_known[i].offset);
        if (value != MEMRT__INHERIT && index-- == 0) {
            fill_row(find_row(limits_known[i].name), value, out);
            return true;
        }
    }
    return false;
}

/// NULL: as the process has it.
static bool read_limit(const option_type_t *type, const char *text, size_t *value)
{
    *value = MEMRT__INHERIT;
    return text == NULL || type->read(text, value);
}

bool memrt__limits_read(const char *huge_pages, const char *cache_limit, const char *decay,
                        memrt__limits_t *out)
{
    return read_limit(&huge_type, huge_pages, &out->huge_pages) &&
           read_limit(&bytes_type, cache_limit, &out->cache_limit) &&
           read_limit(&decay_type, decay, &out->decay);
}
