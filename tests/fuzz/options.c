/// Set options to random texts, by environment variables and by calls, and compare with an
/// independent parser after docs/guide/services/options.md. Valid values take effect, and are shown
/// in the option list. Invalid values and unknown names change nothing, and cause a warning or an
/// error.
///
/// No library replaces the parser: libFuzzer makes the texts, and the options are memrt's own.

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include <memrt/memrt.h>

#include "runtime/config/options.h"
#include "support/input.h"

#define LINES 24
#define ROOM 200

static const memrt_api_t *api;

/* --- The independent parser. --- */

/// Parse a text of digits only, with a value of at most `most`.
static bool reads_digits(const char *text, size_t length, size_t most, size_t *value)
{
    __uint128_t number = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        number = number * 10 + (__uint128_t)(text[i] - '0');
        number = number > UINT64_MAX ? (__uint128_t)UINT64_MAX + 1 : number;
    }
    *value = (size_t)number;
    return length > 0 && number <= most;
}

static bool reads_flag(const char *text, size_t *value)
{
    static const char *const yes[] = {"1", "on", "yes", "true"};
    static const char *const no[] = {"0", "off", "no", "false", ""};
    *value = 0;
    for (size_t i = 0; i < 4; i++) {
        *value |= strcasecmp(text, yes[i]) == 0;
    }
    bool known = *value != 0;
    for (size_t i = 0; i < 5; i++) {
        known |= strcasecmp(text, no[i]) == 0;
    }
    return known;
}

static bool reads_alignment(const char *text, size_t *value)
{
    return reads_digits(text, strlen(text), MEMRT_ALIGN_MAX, value) && *value != 0 &&
           (*value & (*value - 1)) == 0;
}

static bool reads_bytes(const char *text, size_t *value)
{
    static const char units[] = "kmg";
    size_t length = strlen(text), shift = 0;
    *value = SIZE_MAX;
    if (strcasecmp(text, "none") == 0) {
        return true;
    }
    if (length > 0) {
        const char *unit = strchr(units, tolower((unsigned char)text[length - 1]));
        shift = unit == NULL ? 0 : 10 * (size_t)(unit - units + 1);
        length -= unit != NULL;
    }
    if (!reads_digits(text, length, (SIZE_MAX - 2) >> shift, value)) {
        return false;
    }
    *value <<= shift;
    return true;
}

/// Parse a maximum of live bytes. The value of `auto` and of a percentage has no meaning.
static bool reads_limit(const char *text, size_t *value)
{
    size_t length = strlen(text);
    if (length > 0 && text[length - 1] == '%') {
        return reads_digits(text, length - 1, 100, value) && *value != 0;
    }
    return strcasecmp(text, "auto") == 0 ||
           (reads_bytes(text, value) && (*value == SIZE_MAX || *value <= SIZE_MAX - 200));
}

static bool reads_decay(const char *text, size_t *value)
{
    if (strcasecmp(text, "never") == 0) {
        *value = SIZE_MAX;
        return true;
    }
    return reads_digits(text, strlen(text), 24 * 3600 * 1000, value);
}

static bool reads_huge(const char *text, size_t *value)
{
    *value = strcasecmp(text, "off") == 0 ? 0 : strcasecmp(text, "advise") == 0 ? 1 : 2;
    return *value < 2 || strcasecmp(text, "large") == 0;
}

static bool reads_peak(const char *text, size_t *value)
{
    *value = strcasecmp(text, "exact") == 0 ? 1 : strcasecmp(text, "close") == 0 ? 2 : 0;
    return *value != 0 || strcasecmp(text, "bounded") == 0;
}

static bool reads_leaks(const char *text, size_t *value)
{
    *value = strcasecmp(text, "off") == 0 ? 0 : strcasecmp(text, "report") == 0 ? 1 : 2;
    return *value < 2 || strcasecmp(text, "fail") == 0;
}

static bool reads_frames(const char *text, size_t *value)
{
    return reads_digits(text, strlen(text), MEMRT_FRAMES_MAX, value);
}

static bool reads_sample(const char *text, size_t *value)
{
    return strcasecmp(text, "none") != 0 && reads_bytes(text, value);
}

/// Parse a file name. The value is the length of the text.
static bool reads_file(const char *text, size_t *value)
{
    *value = strlen(text);
    return *value > 0 && *value < MEMRT__TEXT_MAX;
}

/// Parse the choice of the log of operations. The value is the length of the text.
static bool reads_log(const char *text, size_t *value)
{
    *value = strlen(text);
    if (text[0] == '0' && text[1] == 'x') {
        for (size_t i = 2; i < *value; i++) {
            if (!isxdigit((unsigned char)text[i])) {
                return false;
            }
        }
        return *value > 2 && *value <= 18;
    }
    return *value > 0 && *value <= MEMRT_NAME_MAX;
}

typedef struct meaning {
    const char *name;
    bool (*reads)(const char *text, size_t *value);
    bool settable;
    const char *boundless; ///< text that represents SIZE_MAX
} meaning_t;

static const meaning_t meanings[] = {{"MEMRT_CHECK", reads_flag, false, ""},
                                     {"MEMRT_TRACK", reads_flag, false, ""},
                                     {"MEMRT_ALIGNMENT", reads_alignment, false, ""},
                                     {"MEMRT_CACHE", reads_flag, false, ""},
                                     {"MEMRT_CACHE_LIMIT", reads_bytes, true, "none"},
                                     {"MEMRT_DECAY", reads_decay, true, "never"},
                                     {"MEMRT_HUGEPAGES", reads_huge, true, ""},
                                     {"MEMRT_PEAK", reads_peak, true, ""},
                                     {"MEMRT_LEAKS", reads_leaks, false, ""},
                                     {"MEMRT_TRACK_FRAMES", reads_frames, false, ""},
                                     {"MEMRT_TRACK_NATIVE", reads_frames, false, ""},
                                     {"MEMRT_TRACK_SAMPLE", reads_sample, false, ""},
                                     {"MEMRT_GUARD_SAMPLE", reads_sample, false, ""},
                                     {"MEMRT_SHARE", reads_flag, true, ""},
                                     {"MEMRT_LATENCY", reads_flag, true, ""},
                                     {"MEMRT_REFERENCES", reads_flag, false, ""},
                                     {"MEMRT_LOG_OPERATIONS", reads_log, false, ""},
                                     {"MEMRT_CUDA_SYNC", reads_flag, true, ""},
                                     {"MEMRT_CUDA_DRIVER", reads_file, true, ""},
                                     {"MEMRT_DUMP_ON_OOM", reads_file, false, ""},
                                     {"MEMRT_ALLOCATOR", reads_file, false, ""},
                                     {"MEMRT_LIMIT", reads_limit, true, "none"},
                                     {"MEMRT_SOFT_LIMIT", reads_limit, true, "none"},
                                     {"MEMRT_TOOLS", reads_flag, false, ""}};
#define MEANINGS (sizeof(meanings) / sizeof(meanings[0]))

/// Return the meaning of an option name, or NULL. With `short_too`, the prefix MEMRT_ may be
/// missing, and the short name ignores case.
static const meaning_t *meaning_of(const char *name, bool short_too)
{
    for (size_t i = 0; i < MEANINGS; i++) {
        if (strcmp(name, meanings[i].name) == 0 ||
            (short_too && strcasecmp(name, meanings[i].name + strlen("MEMRT_")) == 0)) {
            return &meanings[i];
        }
    }
    return NULL;
}

/// Format the value of an option as memrt shows it. `given` is the original text of the value.
static void show(const meaning_t *meaning, size_t value, const char *given, char text[32])
{
    static const char *const huge[] = {"off", "advise", "large"};
    static const char *const leaks[] = {"off", "report", "fail"};
    static const char *const peak[] = {"bounded", "exact", "close"};
    if (meaning->reads == reads_file || meaning->reads == reads_log) {
        snprintf(text, 32, "%.31s", given);
    } else if (meaning->reads == reads_huge) {
        strcpy(text, huge[value]);
    } else if (meaning->reads == reads_leaks) {
        strcpy(text, leaks[value]);
    } else if (meaning->reads == reads_peak) {
        strcpy(text, peak[value]);
    } else if (meaning->reads == reads_limit && strcasecmp(given, "auto") == 0) {
        strcpy(text, "auto");
    } else if (meaning->reads == reads_limit && strchr(given, '%') != NULL) {
        snprintf(text, 32, "%zu%%", value);
    } else if (value == SIZE_MAX) {
        strcpy(text, meaning->boundless);
    } else {
        snprintf(text, 32, "%zu", value);
    }
}

static memrt_option_t row_of(const char *name)
{
    memrt_option_t row = {.name = ""};
    for (size_t i = 0; strcmp(row.name, name) != 0; i++) {
        HOLDS(api->option(i, &row));
    }
    return row;
}

static void expect_in_force(const meaning_t *meaning, size_t value, const char *given)
{
    char text[32];
    show(meaning, value, given, text);
    HOLDS(strcmp(row_of(meaning->name).value, text) == 0);
}

/* --- Options by calls. --- */

/// Check that `why` is a non-empty text, terminated within `room` bytes.
static void expect_sentence(const char *why, size_t room)
{
    size_t length = strnlen(why, room);
    HOLDS(length > 0 && length < room);
}

/// Return whether a text is a soft limit above the limit of the process.
static bool is_above_limit(const meaning_t *meaning, const char *text)
{
    size_t bytes;
    memrt_limit_t limit = {.struct_size = sizeof(limit)};
    HOLDS(api->limit_read(NULL, NULL, &limit) == MEMRT_OK);
    return strcmp(meaning->name, "MEMRT_SOFT_LIMIT") == 0 && reads_bytes(text, &bytes) &&
           bytes != SIZE_MAX && bytes > limit.limit;
}

static void try_call(const char *name, const char *text)
{
    char why[ROOM];
    size_t value, room = strlen(text) % 3 == 0 ? 20 : ROOM;
    const meaning_t *meaning = meaning_of(name, true);
    bool good = meaning != NULL && meaning->reads(text, &value);
    memset(why, '?', sizeof(why));
    HOLDS(api->option_check(name, text, why, room) == (good ? MEMRT_OK : MEMRT_EINVAL));
    if (!good) {
        expect_sentence(why, room);
    }
    memrt_option_t before = meaning == NULL ? (memrt_option_t){0} : row_of(meaning->name);
    memrt_status_t status = api->option_set(name, text, why, room);
    bool above = good && is_above_limit(meaning, text);
    HOLDS(status == (good && meaning->settable && !above ? MEMRT_OK : MEMRT_EINVAL));
    if (status == MEMRT_OK) {
        expect_in_force(meaning, value, text);
    } else {
        expect_sentence(why, room);
        HOLDS(meaning == NULL || strcmp(row_of(meaning->name).value, before.value) == 0);
    }
    HOLDS(api->option_set(name, text, NULL, 0) == status);
}

static bool is_option_of_policies(const meaning_t *meaning)
{
    static const char *const names[] = {"MEMRT_CACHE_LIMIT", "MEMRT_DECAY", "MEMRT_HUGEPAGES",
                                        "MEMRT_GUARD_SAMPLE"};
    bool found = false;
    for (size_t i = 0; meaning != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        found |= strcmp(meaning->name, names[i]) == 0;
    }
    return found;
}

/// Change a live policy by any name and text.
static void try_change(const char *name, const char *text)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options), .decay = "0"};
    memrt_policy_t *policy;
    HOLDS(api->policy_new(&options, &policy) == MEMRT_OK);
    char why[ROOM];
    size_t value;
    const meaning_t *meaning = meaning_of(name, true);
    bool good = is_option_of_policies(meaning) && meaning->reads(text, &value);
    memrt_status_t status = api->policy_option_set(policy, name, text, why, sizeof(why));
    bool fixed = status == MEMRT_ENOTSUP && !memrt__options.cache &&
                 strcmp(meaning->name, "MEMRT_HUGEPAGES") == 0;
    HOLDS(status == (good ? MEMRT_OK : MEMRT_EINVAL) || (good && fixed));
    if (status != MEMRT_OK) {
        expect_sentence(why, sizeof(why));
    }
    api->policy_release(policy);
}

static void try_policy(const char *text)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options), .cache_limit = text};
    memrt_policy_t *policy = NULL;
    size_t value;
    bool good = reads_bytes(text, &value);
    HOLDS(api->policy_new(&options, &policy) == (good ? MEMRT_OK : MEMRT_EINVAL));
    HOLDS(good == (policy != NULL));
    if (good) {
        api->policy_release(policy);
    }
}

/* --- Options by environment variables. --- */

extern char **environ;

static size_t expected_warnings(char **lines, size_t count)
{
    size_t warnings = 0, value;
    for (size_t i = 0; i < MEANINGS; i++) {
        const char *text = getenv(meanings[i].name);
        warnings += text != NULL && !meanings[i].reads(text, &value);
    }
    for (size_t i = 0; i < count; i++) {
        char name[ROOM];
        size_t length = strcspn(lines[i], "=");
        snprintf(name, sizeof(name), "%.*s", (int)(length < ROOM ? length : ROOM - 1), lines[i]);
        bool ours = strncmp(name, "MEMRT_", 6) == 0;
        warnings += ours && meaning_of(name, false) == NULL;
    }
    return warnings < 16 ? warnings : 16;
}

/// Return whether the value in force also depends on other options, or on a tool in the process.
static bool has_other_causes(const char *name)
{
    return strcmp(name, "MEMRT_CACHE") == 0 || strcmp(name, "MEMRT_TOOLS") == 0;
}

static void expect_rows_from_environment(void)
{
    for (size_t i = 0; i < MEANINGS; i++) {
        const char *text = getenv(meanings[i].name);
        size_t value;
        bool given = text != NULL && meanings[i].reads(text, &value);
        if (given && !has_other_causes(meanings[i].name)) {
            expect_in_force(&meanings[i], value, text);
        }
    }
}

static void try_environment(char **lines, size_t count)
{
    char **environ_before = environ;
    memrt__options_t options_before = memrt__options;
    environ = lines;
    memrt__options_read();
    size_t warnings = 0;
    for (const char *why; (why = api->option_warning(warnings)) != NULL; warnings++) {
        expect_sentence(why, 256);
    }
    HOLDS(warnings == expected_warnings(lines, count));
    expect_rows_from_environment();
    memrt__options = options_before;
    environ = environ_before;
}

/* --- The fuzz target. --- */

/// Return a copy of a line as text. A first byte below MEANINGS is replaced by `MEMRT_NAME=`, with
/// the option of that number. The caller frees the copy.
static char *line_of(const uint8_t *bytes, size_t length)
{
    bool named = length > 0 && bytes[0] < MEANINGS;
    const char *name = named ? meanings[bytes[0]].name : "";
    char *line = malloc(strlen(name) + length + 2);
    HOLDS(line != NULL);
    strcpy(line, name);
    strcat(line, named ? "=" : "");
    size_t at = strlen(line);
    memcpy(line + at, bytes + named, length - named);
    line[at + length - named] = '\0';
    return line;
}

static void try_line(const char *line)
{
    char *name = strdup(line), *equals;
    HOLDS(name != NULL);
    equals = strchr(name, '=');
    const char *text = equals == NULL ? "" : equals + 1;
    if (equals != NULL) {
        *equals = '\0';
    }
    try_call(name, text);
    try_change(name, text);
    try_policy(text);
    free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *lines[LINES + 1];
    size_t count = 0;
    const uint8_t *end = bytes + size;
    api = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    while (bytes < end && count < LINES) {
        const uint8_t *stop = memchr(bytes, '\n', (size_t)(end - bytes));
        stop = stop == NULL ? end : stop;
        lines[count++] = line_of(bytes, (size_t)(stop - bytes));
        bytes = stop + (stop < end);
    }
    lines[count] = NULL;
    try_environment(lines, count);
    for (size_t i = 0; i < count; i++) {
        try_line(lines[i]);
        free(lines[i]);
    }
    return 0;
}
