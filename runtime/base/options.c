#include "runtime/base/options.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <memrt/meminfo.h>

#include "runtime/base/os.h"
#include "runtime/base/size.h"

#define DEFAULTS {.check = false, .track = false, .huge_pages = true, .alignment = MEMRT_ALIGN_MIN}

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

static bool read_alignment(const char *text, void *field)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || !memrt__is_power_of_two((size_t)value) ||
        value > MEMRT_ALIGN_MAX || text[0] == '-') {
        return false;
    }
    *(size_t *)field = (size_t)value;
    return true;
}

static void show_alignment(const void *field, char *text, size_t length)
{
    snprintf(text, length, "%zu", *(const size_t *)field);
}

static const option_type_t flag_type = {read_flag, show_flag, "0 or 1"};
static const option_type_t alignment_type = {read_alignment, show_alignment,
                                             "a power of two from 1 to 1073741824"};

static const option_row_t rows[] = {
    {"MEMRT_CHECK", &flag_type, &memrt__options.check,
     "1: verify every reference and fence every block, abort with a message on misuse; default 0"},
    {"MEMRT_TRACK", &flag_type, &memrt__options.track,
     "1: list live buffers from the start of the process; default 0"},
    {"MEMRT_HUGEPAGES", &flag_type, &memrt__options.huge_pages,
     "0: never advise huge pages on large blocks; default 1"},
    {"MEMRT_ALIGNMENT", &alignment_type, &memrt__options.alignment,
     "alignment in bytes of data whose policy names none, a power of two; default 64"},
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
