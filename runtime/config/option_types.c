#include "runtime/config/option_types.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <memrt/meminfo.h>
#include <memrt/observe/site.h>

#include "runtime/base/size.h"

/// Return the index of `text` in `words`, ignoring case, or `count` if not found.
static size_t find_word(const char *const *words, size_t count, const char *text)
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
    size_t index = find_word(words, 9, text);
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
    *value = find_word(huge_words, HUGE_WORDS, text);
    return *value < HUGE_WORDS;
}

static const char *const leaks_words[] = {
    [MEMRT__LEAKS_OFF] = "off", [MEMRT__LEAKS_REPORT] = "report", [MEMRT__LEAKS_FAIL] = "fail"};
#define LEAKS_WORDS (sizeof(leaks_words) / sizeof(leaks_words[0]))

static bool read_leaks(const char *text, size_t *value)
{
    *value = find_word(leaks_words, LEAKS_WORDS, text);
    return *value < LEAKS_WORDS;
}

static void show_leaks(size_t value, char *text, size_t length)
{
    MEMRT__ASSERT(value < LEAKS_WORDS);
    snprintf(text, length, "%s", leaks_words[value]);
}

static void show_huge(size_t value, char *text, size_t length)
{
    MEMRT__ASSERT(value < HUGE_WORDS);
    snprintf(text, length, "%s", huge_words[value]);
}

static const char *const peak_words[] = {"bounded", "exact", "close"};
#define PEAK_WORDS (sizeof(peak_words) / sizeof(peak_words[0]))

static bool read_peak(const char *text, size_t *value)
{
    *value = find_word(peak_words, PEAK_WORDS, text);
    return *value < PEAK_WORDS;
}

static void show_peak(size_t value, char *text, size_t length)
{
    MEMRT__ASSERT(value < PEAK_WORDS);
    snprintf(text, length, "%s", peak_words[value]);
}

/// Read a whole number in decimal digits. `*end` points behind the last digit.
static bool read_digits(const char *text, char **end, size_t *value)
{
    if (!isdigit((unsigned char)text[0])) {
        return false;
    }
    errno = 0;
    *value = strtoull(text, end, 10);
    return errno == 0;
}

/// Read a number of at most `most`, with no text behind the digits.
static bool read_number(const char *text, size_t most, size_t *value)
{
    char *end;
    return read_digits(text, &end, value) && *end == '\0' && *value <= most;
}

static bool read_alignment(const char *text, size_t *value)
{
    return read_number(text, MEMRT_ALIGN_MAX, value) && memrt__is_power_of_two(*value);
}

/// Set `*value` to SIZE_MAX, and return whether `text` is `word`, which stands for "no bound".
static bool is_word_for_no_bound(const char *text, const char *word, size_t *value)
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

/// Read a whole number of bytes, with an optional suffix K, M or G for 1024, 1024^2 or 1024^3; or
/// "none".
static bool read_bytes(const char *text, size_t *value)
{
    if (is_word_for_no_bound(text, "none", value)) {
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

/// Read a number of bytes, a percentage, "auto", or "none".
static bool read_limit(const char *text, size_t *value)
{
    char *end;
    if (strcasecmp(text, "auto") == 0) {
        *value = MEMRT__LIMIT_AUTO;
        return true;
    }
    if (read_digits(text, &end, value) && strcmp(end, "%") == 0) {
        bool valid = *value - 1 < 100;
        *value += MEMRT__LIMIT_PERCENT;
        return valid;
    }
    /* Numbers between MEMRT__LIMIT_PERCENT and SIZE_MAX stand for percentages and "auto". */
    return read_bytes(text, value) && (*value == SIZE_MAX || *value <= MEMRT__LIMIT_PERCENT);
}

static void show_limit(size_t value, char *text, size_t length)
{
    if (value == MEMRT__LIMIT_AUTO) {
        snprintf(text, length, "auto");
    } else if (value - MEMRT__LIMIT_PERCENT - 1 < 100) {
        snprintf(text, length, "%zu%%", value - MEMRT__LIMIT_PERCENT);
    } else {
        show_bytes(value, text, length);
    }
}

#define DAY_MS ((size_t)24 * 3600 * 1000)

static bool read_decay(const char *text, size_t *value)
{
    return is_word_for_no_bound(text, "never", value) || read_number(text, DAY_MS, value);
}

static void show_decay(size_t value, char *text, size_t length)
{
    show_bound(value, "never", text, length);
}

static bool read_frames(const char *text, size_t *value)
{
    return read_number(text, MEMRT_FRAMES_MAX, value);
}

static bool read_sample(const char *text, size_t *value)
{
    return read_bytes(text, value) && *value != SIZE_MAX;
}

/// Check the text of a file or folder. The numeric value of such an option is the length of the
/// text.
static bool read_text(const char *text, size_t *value)
{
    *value = strnlen(text, MEMRT__TEXT_MAX);
    return *value != 0 && *value < MEMRT__TEXT_MAX;
}

/// Check a choice of MemInfos: a word, an address, or a name.
static bool read_log(const char *text, size_t *value)
{
    *value = strnlen(text, MEMRT_NAME_MAX + 1);
    bool is_address = strncmp(text, "0x", 2) == 0;
    size_t digits = is_address ? strspn(text + 2, "0123456789abcdefABCDEF") : 0;
    return *value != 0 && *value <= MEMRT_NAME_MAX &&
           (!is_address || (text[2 + digits] == '\0' && digits != 0 && digits <= 16));
}

const memrt__option_type_t memrt__option_flag = {read_flag, show_number, "0 or 1"};
const memrt__option_type_t memrt__option_alignment = {read_alignment, show_number,
                                                      "a power of two from 1 to 1073741824"};
const memrt__option_type_t memrt__option_huge = {read_huge, show_huge, "off, advise or large"};
const memrt__option_type_t memrt__option_leaks = {read_leaks, show_leaks, "off, report or fail"};
const memrt__option_type_t memrt__option_bytes = {
    read_bytes, show_bytes, "a number of bytes like 268435456 or 256M, or none"};
const memrt__option_type_t memrt__option_frames = {read_frames, show_number,
                                                   "a number from 0 to 128"};
const memrt__option_type_t memrt__option_sample = {read_sample, show_number,
                                                   "a number of bytes like 524288 or 512K"};
const memrt__option_type_t memrt__option_decay = {read_decay, show_decay,
                                                  "milliseconds from 0 to 86400000, or never"};
const memrt__option_type_t memrt__option_peak = {read_peak, show_peak, "bounded, close or exact"};

const memrt__option_type_t memrt__option_file = {read_text, show_number, "the name of a file"};
const memrt__option_type_t memrt__option_folder = {read_text, show_number,
                                                   "the path of a folder, or none"};
const memrt__option_type_t memrt__option_library = {
    read_text, show_number, "a library and the symbol of a table, LIBRARY:SYMBOL, or none"};
const memrt__option_type_t memrt__option_limit = {
    read_limit, show_limit,
    "a number of bytes like 268435456 or 256M, a part like 80%, auto or none"};
const memrt__option_type_t memrt__option_log = {
    read_log, show_number,
    "all, an address like 0x7f10a0, a name of at most 63 bytes, later or none"};
