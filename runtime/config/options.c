#include "runtime/config/options.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <memrt/meminfo.h>
#include <memrt/observe/site.h>

#include "runtime/base/atomics.h"
#include "runtime/base/memory_tool.h"
#include "runtime/base/size.h"
#include "runtime/os/latency.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"

#define DEFAULTS                                                                                   \
    {                                                                                              \
        .check = false,                                                                            \
        .references = false,                                                                       \
        .track = false,                                                                            \
        .track_frames = 16,                                                                        \
        .cache = true,                                                                             \
        .tools = true,                                                                             \
        .alignment = MEMRT_ALIGN_MIN,                                                              \
        .huge_pages = MEMRT__HUGE_LARGE,                                                           \
        .cache_limit = SIZE_MAX,                                                                   \
        .limit = SIZE_MAX,                                                                         \
        .soft_limit = SIZE_MAX,                                                                    \
        .decay = 500,                                                                              \
        .peak_mode = 0,                                                                            \
        .cuda_sync = 1,                                                                            \
        .cuda_driver = "libcuda.so.1",                                                             \
        .dump_folder = "none",                                                                     \
        .allocator = "none",                                                                       \
        .log_operations = "none",                                                                  \
    }

memrt__options_t memrt__options = DEFAULTS;

typedef struct option_row {
    const char *name;
    const memrt__option_type_t *type;
    bool *flag;     ///< location of a value that is fixed after the start; NULL: see `number`
    size_t *number; ///< location of any other value; atomic, relaxed
    bool settable;  ///< may be set after the start
    const char *help;
} option_row_t;

typedef char option_text_t[MEMRT__TEXT_MAX];

static const option_row_t rows[] = {
    {"MEMRT_CHECK", &memrt__option_flag, &memrt__options.check, NULL, false,
     "1: verify references, put redzones around blocks, abort with a message on misuse; default 0"},
    {"MEMRT_TRACK", &memrt__option_flag, &memrt__options.track, NULL, false,
     "1: list live buffers from the start of the process; default 0"},
    {"MEMRT_LEAKS", &memrt__option_leaks, NULL, &memrt__options.leaks, false,
     "report: track, and list buffers live at exit on stderr; fail: also exit with status 23 for "
     "leaks; default off"},
    {"MEMRT_TRACK_FRAMES", &memrt__option_frames, NULL, &memrt__options.track_frames, false,
     "maximum of interpreter frames per tracked allocation, 0 to 128; default 16"},
    {"MEMRT_TRACK_NATIVE", &memrt__option_frames, NULL, &memrt__options.track_native, false,
     "maximum of native frames per tracked allocation, 0 to 128; default 0"},
    {"MEMRT_TRACK_SAMPLE", &memrt__option_sample, NULL, &memrt__options.track_sample, false,
     "average bytes between listed allocations, for sampling; K, M, G; default 0: list all"},
    {"MEMRT_GUARD_SAMPLE", &memrt__option_sample, NULL, &memrt__options.guard_sample, false,
     "average bytes between buffers with guard pages, to find writes past the end; K, M, G; 1: all "
     "buffers; for production 64M; default 0: none"},
    {"MEMRT_ALIGNMENT", &memrt__option_alignment, NULL, &memrt__options.alignment, false,
     "alignment in bytes for policies without an alignment, a power of two; default 64"},
    {"MEMRT_ALLOCATOR", &memrt__option_library, NULL, NULL, false,
     "LIBRARY:SYMBOL, a shared object and the allocator table that it exports, for the default "
     "policy; default none"},
    {"MEMRT_CACHE", &memrt__option_flag, &memrt__options.cache, NULL, false,
     "0: keep no freed memory for reuse; default 1, or 0 where MEMRT_CHECK or MEMRT_TOOLS is 1"},
    {"MEMRT_TOOLS", &memrt__option_flag, &memrt__options.tools, NULL, false,
     "1: allocate each block by malloc, so that a tool reports bad accesses and leaks; default 1 "
     "under " MEMRT__MEMORY_TOOLS ", else always 0"},
    {"MEMRT_CACHE_LIMIT", &memrt__option_bytes, NULL, &memrt__options.cache_limit, true,
     "maximum bytes of freed blocks above 1 MiB to keep for reuse; K, M, G; default none"},
    {"MEMRT_LIMIT", &memrt__option_limit, NULL, &memrt__options.limit, true,
     "maximum bytes of live blocks: K, M, G; 80%: of the memory that the system allows; auto: 90% "
     "less other memory of the process; default none"},
    {"MEMRT_SOFT_LIMIT", &memrt__option_limit, NULL, &memrt__options.soft_limit, true,
     "bytes of live blocks from which memory is freed without refusals: K, M, G; 80%: of the "
     "memory that the system allows; auto: 90% of the limit; default none"},
    {"MEMRT_DECAY", &memrt__option_decay, NULL, &memrt__options.decay, true,
     "milliseconds after which unused memory goes back to the system, or never; default 500"},
    {"MEMRT_HUGEPAGES", &memrt__option_huge, NULL, &memrt__options.huge_pages, true,
     "off; advise: wherever a huge page fits; large: for blocks of at least 4 MiB; default large"},
    {"MEMRT_PEAK", &memrt__option_peak, NULL, &memrt__options.peak_mode, true,
     "bounded: the peak is off by at most peak_error; close: by at most 2% of the peak; exact: "
     "threads publish each block; default bounded"},
    {"MEMRT_SHARE", &memrt__option_flag, NULL, &memrt__options.share, true,
     "1: other processes of the user may read the statistics (`python -m memrt top`); default 0"},
    {"MEMRT_LATENCY", &memrt__option_flag, NULL, &memrt__latency_is_on, true,
     "1: measure the time of system calls and slow paths; default 0"},
    {"MEMRT_REFERENCES", &memrt__option_flag, &memrt__options.references, NULL, false,
     "1: count references that are acquired and released through the function table; default 0"},
    {"MEMRT_LOG_OPERATIONS", &memrt__option_log, NULL, NULL, true,
     "MemInfos whose allocation, references and free are logged on stderr: all, an address 0x..., "
     "a "
     "name, or later: none, until set later; default none"},
    {"MEMRT_CUDA_SYNC", &memrt__option_flag, NULL, &memrt__options.cuda_sync, true,
     "0: exchange arrays with CUDA libraries without stream synchronization; default 1"},
    {"MEMRT_CUDA_DRIVER", &memrt__option_file, NULL, NULL, true,
     "library to load as the CUDA driver at first use; default libcuda.so.1"},
    {"MEMRT_DUMP_ON_OOM", &memrt__option_folder, NULL, NULL, false,
     "folder for dumps of live buffers when Python code runs out of memory; default none"},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

#define PREFIX "MEMRT_"
#define PREFIX_LENGTH (sizeof(PREFIX) - 1)

/// Return the option with the given name: the environment variable's name, or the name without
/// prefix in any case. Returns NULL for an unknown name.
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

/// Return the location of a text option, or NULL for other options. A text that can be set later is
/// written under the lock of rank OPTIONS.
static option_text_t *text_of(const option_row_t *row)
{
    if (row->type == &memrt__option_file) {
        return &memrt__options.cuda_driver;
    }
    if (row->type == &memrt__option_library) {
        return &memrt__options.allocator;
    }
    if (row->type == &memrt__option_log) {
        return &memrt__options.log_operations;
    }
    return row->type == &memrt__option_folder ? &memrt__options.dump_folder : NULL;
}

static size_t get_value(const option_row_t *row)
{
    if (text_of(row) != NULL) {
        return 0;
    }
    return row->flag != NULL ? *row->flag : memrt__load_relaxed(row->number);
}

/// Store a value that was read from `text`.
static void store_value(const option_row_t *row, size_t value, const char *text)
{
    option_text_t *location = text_of(row);
    MEMRT__ASSERT(location != NULL || (row->flag == NULL) != (row->number == NULL));
    if (location != NULL) {
        MEMRT__ASSERT(value < MEMRT__TEXT_MAX && text[value] == '\0');
        memcpy(*location, text, value + 1);
    } else if (row->flag != NULL) {
        *row->flag = value != 0;
    } else {
        memrt__store_relaxed(row->number, value);
    }
}

#define WARNINGS_MAX 16
static char warnings[WARNINGS_MAX][256];
static size_t warning_count;

static char *add_warning(void)
{
    return warning_count < WARNINGS_MAX ? warnings[warning_count++] : NULL;
}

/// Write to `why` that `text` is not a valid value of the option.
static void write_bad_value_error(const option_row_t *row, const char *name, const char *text,
                                  const char *becomes, char *why, size_t length)
{
    snprintf(why, length, "%.40s must be %s, got '%.60s': the value is %s", name,
             row->type->expects, text, becomes);
}

static void write_unknown_name_error(const char *name, size_t name_length, const char *becomes,
                                     char *why, size_t length)
{
    snprintf(why, length,
             "%.*s is not an option of memrt and is %s: `python -m memrt info` lists all options",
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
        store_value(row, value, text);
        return;
    }
    char *warning = add_warning();
    if (warning != NULL) {
        write_bad_value_error(row, row->name, text, "ignored", warning, sizeof(warnings[0]));
    }
}

static bool is_known_name(const char *name, size_t length)
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
        if (strncmp(entry, PREFIX, PREFIX_LENGTH) != 0 || is_known_name(entry, length)) {
            continue;
        }
        char *warning = add_warning();
        if (warning != NULL) {
            write_unknown_name_error(entry, length, "ignored", warning, sizeof(warnings[0]));
        }
    }
}

void memrt__options_warn(const char *why)
{
    char *warning = add_warning();
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
    memrt__options.tools &= memrt__memory_tool_is_present();
    /* Freed memory must not be reused at once. */
    memrt__options.cache &= !memrt__options.check && !memrt__options.tools;
    memrt__options.log = strcmp(memrt__options.log_operations, "none") != 0;
    warn_of_unknown_names();
}

static void fill_row(const option_row_t *row, size_t value, memrt_option_t *out)
{
    out->name = row->name;
    out->help = row->help;
    const option_text_t *location = (const option_text_t *)text_of(row);
    if (location != NULL) {
        char text[MEMRT__TEXT_MAX];
        memrt__options_text(location, text);
        snprintf(out->value, sizeof(out->value), "%.31s", text); /* cut to fit */
    } else {
        row->type->show(value, out->value, sizeof(out->value));
    }
}

bool memrt__options_row(size_t index, memrt_option_t *out)
{
    if (index >= ROWS) {
        return false;
    }
    fill_row(&rows[index], get_value(&rows[index]), out);
    return true;
}

void memrt__options_text(const char (*option)[MEMRT__TEXT_MAX], char *out)
{
    memrt__lock(MEMRT__RANK_OPTIONS);
    memcpy(out, *option, MEMRT__TEXT_MAX);
    memrt__unlock(MEMRT__RANK_OPTIONS);
}

void memrt__options_drop_allocator(void)
{
    memrt__lock(MEMRT__RANK_OPTIONS);
    strcpy(memrt__options.allocator, "none");
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
        write_unknown_name_error(name, strlen(name), "refused", why, length);
        return MEMRT_EINVAL;
    }
    if (!row->type->read(text, value)) {
        write_bad_value_error(row, name, text, "refused", why, length);
        return MEMRT_EINVAL;
    }
    return MEMRT_OK;
}

memrt_status_t memrt__options_check(const char *name, const char *value, char *why, size_t length)
{
    size_t ignored;
    return read_value(find_row(name), name, value, &ignored, why, length);
}

/// Return whether an option can change. The log of operations needs a table of its own, which a
/// process gets at the start or never.
static bool is_settable(const option_row_t *row)
{
    return row->settable && (memrt__options.log || row->type != &memrt__option_log);
}

memrt_status_t memrt__options_set(const char *name, const char *value, char *why, size_t length)
{
    const option_row_t *row = find_row(name);
    size_t number;
    if (row != NULL && !is_settable(row)) {
        snprintf(why, length, "%s cannot change in a running process: set %s in the environment",
                 row->name, row->name);
        return MEMRT_EINVAL;
    }
    memrt_status_t status = read_value(row, name, value, &number, why, length);
    if (status == MEMRT_OK) {
        store_value(row, number, value);
    }
    return status;
}

bool memrt__options_is_named(const char *name, const size_t *value)
{
    const option_row_t *row = find_row(name);
    return row != NULL && row->number == value;
}

#if MEMRT_DEBUG

bool memrt__options_is_valid(void)
{
    const memrt__options_t *now = &memrt__options;
    memrt__lock(MEMRT__RANK_OPTIONS);
    bool valid = MEMRT__HOLDS(memrt__is_power_of_two(now->alignment)) &&
                 MEMRT__HOLDS(now->alignment <= MEMRT_ALIGN_MAX) &&
                 MEMRT__HOLDS(now->leaks <= MEMRT__LEAKS_FAIL) &&
                 MEMRT__HOLDS(memrt__load_relaxed(&now->huge_pages) <= MEMRT__HUGE_LARGE) &&
                 MEMRT__HOLDS(now->track_frames <= MEMRT_FRAMES_MAX) &&
                 MEMRT__HOLDS(now->track_native <= MEMRT_FRAMES_MAX) &&
                 MEMRT__HOLDS(memrt__load_relaxed(&now->decay) != MEMRT__INHERIT) &&
                 MEMRT__HOLDS(memrt__load_relaxed(&now->cache_limit) != MEMRT__INHERIT) &&
                 MEMRT__HOLDS(memrt__load_relaxed(&now->peak_mode) <= MEMRT__PEAK_CLOSE) &&
                 /* freed memory must not be reused at once */
                 MEMRT__HOLDS(!(now->check || now->tools) || !now->cache) &&
                 MEMRT__HOLDS(strnlen(now->cuda_driver, MEMRT__TEXT_MAX) < MEMRT__TEXT_MAX) &&
                 MEMRT__HOLDS(strnlen(now->dump_folder, MEMRT__TEXT_MAX) < MEMRT__TEXT_MAX) &&
                 MEMRT__HOLDS(strnlen(now->allocator, MEMRT__TEXT_MAX) < MEMRT__TEXT_MAX) &&
                 MEMRT__HOLDS(strnlen(now->log_operations, MEMRT__TEXT_MAX) <= MEMRT_NAME_MAX) &&
                 MEMRT__HOLDS(now->log || strcmp(now->log_operations, "none") == 0) &&
                 MEMRT__HOLDS(warning_count <= WARNINGS_MAX);
    memrt__unlock(MEMRT__RANK_OPTIONS);
    return valid;
}

#endif
