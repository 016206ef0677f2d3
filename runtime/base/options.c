#include "runtime/base/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <memrt/meminfo.h>

#include "runtime/base/compiler.h"
#include "runtime/base/os.h"
#include "runtime/base/size.h"

#define DEFAULTS                                                                                   \
    {                                                                                              \
        .check = false,                                                                            \
        .track = false,                                                                            \
        .huge_pages = true,                                                                        \
        .cache = !MEMRT__ADDRESS_SANITIZER,                                                        \
        .alignment = MEMRT_ALIGN_MIN,                                                              \
        .cache_limit = SIZE_MAX,                                                                   \
        .decay = 500,                                                                              \
    }

memrt__options_t memrt__options = DEFAULTS;

typedef struct option_row option_row_t;

/// A value's type: how it is read and how it is shown. `read` returns false for a bad value.
typedef struct option_type {
    bool (*read)(const char *text, void *field);
    void (*show)(const void *field, char *text, size_t length);
    const char *expects;
} option_type_t;

struct option_row {
    const char *name;
    const option_type_t *type;
    void *field;
    const char *help;
};

static bool read_flag(const char *text, void *field)
{
    static const char *const on[] = {"1", "on", "yes", "true"};
    static const char *const off[] = {"0", "off", "no", "false", ""};
    for (size_t i = 0; i < sizeof(on) / sizeof(on[0]); i++) {
        if (strcasecmp(text, on[i]) == 0) {
            *(bool *)field = true;
            return true;
        }
    }
    for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
        if (strcasecmp(text, off[i]) == 0) {
            *(bool *)field = false;
            return true;
        }
    }
    return false;
}

static void show_flag(const void *field, char *text, size_t length)
{
    snprintf(text, length, "%d", *(const bool *)field ? 1 : 0);
}

/// A whole number in decimal digits; `end` is what follows.
static bool read_number(const char *text, char **end, size_t *value)
{
    if (!isdigit((unsigned char)text[0])) {
        return false;
    }
    errno = 0;
    *value = strtoull(text, end, 10);
    return errno == 0;
}

static bool read_alignment(const char *text, void *field)
{
    char *end;
    size_t value;
    if (!read_number(text, &end, &value) || *end != '\0' || !memrt__is_power_of_two(value) ||
        value > MEMRT_ALIGN_MAX) {
        return false;
    }
    *(size_t *)field = value;
    return true;
}

/// A whole number of bytes, with K, M or G for 1024, 1024² or 1024³ of them; or "none".
static bool read_bytes(const char *text, void *field)
{
    if (strcasecmp(text, "none") == 0) {
        *(size_t *)field = SIZE_MAX;
        return true;
    }
    char *end;
    size_t value, unit = 1;
    if (!read_number(text, &end, &value)) {
        return false;
    }
    const char *units = "KMG";
    const char *found = *end == '\0' ? NULL : strchr(units, toupper((unsigned char)*end));
    if (found != NULL) {
        unit = (size_t)1 << (10 * (found - units + 1));
        end++;
    }
    return *end == '\0' && memrt__size_mul(value, unit, (size_t *)field);
}

static void show_bytes(const void *field, char *text, size_t length)
{
    size_t value = *(const size_t *)field;
    if (value == SIZE_MAX) {
        snprintf(text, length, "none");
    } else {
        snprintf(text, length, "%zu", value);
    }
}

#define DAY_MS ((size_t)24 * 3600 * 1000)

static bool read_decay(const char *text, void *field)
{
    if (strcasecmp(text, "never") == 0) {
        *(size_t *)field = MEMRT__DECAY_NEVER;
        return true;
    }
    char *end;
    size_t value;
    if (!read_number(text, &end, &value) || *end != '\0' || value > DAY_MS) {
        return false;
    }
    *(size_t *)field = value;
    return true;
}

static void show_decay(const void *field, char *text, size_t length)
{
    size_t value = *(const size_t *)field;
    if (value == MEMRT__DECAY_NEVER) {
        snprintf(text, length, "never");
    } else {
        snprintf(text, length, "%zu", value);
    }
}

static void show_alignment(const void *field, char *text, size_t length)
{
    snprintf(text, length, "%zu", *(const size_t *)field);
}

static const option_type_t flag_type = {read_flag, show_flag, "0 or 1"};
static const option_type_t alignment_type = {read_alignment, show_alignment,
                                             "a power of two from 1 to 1073741824"};
static const option_type_t bytes_type = {read_bytes, show_bytes,
                                         "a number of bytes like 268435456 or 256M, or none"};
static const option_type_t decay_type = {read_decay, show_decay,
                                         "milliseconds from 0 to 86400000, or never"};

static const option_row_t rows[] = {
    {"MEMRT_CHECK", &flag_type, &memrt__options.check,
     "1: verify every reference and fence every block, abort with a message on misuse; default 0"},
    {"MEMRT_TRACK", &flag_type, &memrt__options.track,
     "1: list live buffers from the start of the process; default 0"},
    {"MEMRT_HUGEPAGES", &flag_type, &memrt__options.huge_pages,
     "0: never advise huge pages on large blocks; default 1"},
    {"MEMRT_ALIGNMENT", &alignment_type, &memrt__options.alignment,
     "alignment in bytes of data whose policy names none, a power of two; default 64"},
    {"MEMRT_CACHE", &flag_type, &memrt__options.cache,
     "0: keep no freed memory for reuse; default 1, under AddressSanitizer and with MEMRT_CHECK 0"},
    {"MEMRT_CACHE_LIMIT", &bytes_type, &memrt__options.cache_limit,
     "most bytes of freed blocks above 1 MiB to keep for reuse; K, M, G; default none"},
    {"MEMRT_DECAY", &decay_type, &memrt__options.decay,
     "milliseconds after which unused memory goes back to the system, or never; default 500"},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static char values[ROWS][24]; /* fixed once read */

#define WARNINGS_MAX 16
static char warnings[WARNINGS_MAX][256];
static size_t warning_count;

static char *next_warning(void)
{
    return warning_count < WARNINGS_MAX ? warnings[warning_count++] : NULL;
}

static void read_row(const option_row_t *row)
{
    const char *text = memrt__os_environment(row->name);
    if (text == NULL || row->type->read(text, row->field)) {
        return;
    }
    char *warning = next_warning();
    if (warning != NULL) {
        snprintf(warning, sizeof(warnings[0]), "%s=%.60s is ignored: it must be %s", row->name,
                 text, row->type->expects);
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
        if (strncmp(entry, "MEMRT_", 6) != 0 || is_known(entry, length)) {
            continue;
        }
        char *warning = next_warning();
        if (warning != NULL) {
            snprintf(
                warning, sizeof(warnings[0]),
                "%.*s is not an option of memrt and is ignored; `python -m memrt info` lists them",
                (int)memrt__size_min(length, 80), entry);
        }
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
    for (size_t i = 0; i < ROWS; i++) {
        rows[i].type->show(rows[i].field, values[i], sizeof(values[i]));
    }
}

bool memrt__options_row(size_t index, memrt_option_t *out)
{
    if (index >= ROWS) {
        return false;
    }
    const option_row_t *row = &rows[index];
    *out = (memrt_option_t){row->name, values[index], row->help};
    return true;
}

const char *memrt__options_warning(size_t index)
{
    return index < warning_count ? warnings[index] : NULL;
}
