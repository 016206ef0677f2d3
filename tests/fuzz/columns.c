/// Import malformed and valid Arrow arrays, and compare with an independent check in 128-bit
/// arithmetic. The data of an accepted array lies at the array's address. A refused array stays
/// with its producer. Texts and bitmaps have heap blocks of their exact size, so that
/// AddressSanitizer reports reads beyond the end.
///
/// No library replaces the check: libFuzzer makes the inputs, and the check must be independent of
/// memrt's code.

#include <regex.h>
#include <string.h>

#include <memrt/arrow.h>
#include <memrt/memrt.h>

#include "support/input.h"

enum { ROOM = 4096, LONGEST = 12, BITS = 100 };

static const memrt_api_t *api;
static char memory[ROOM];
static size_t released;

__extension__ typedef __int128 wide_t;

/// An Arrow array, with its schema and buffers.
typedef struct column {
    struct ArrowSchema schema;
    struct ArrowArray array;
    const void *buffers[2];
    char *format;
    uint8_t *bits;
} column_t;

static void end_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void end_array(struct ArrowArray *array)
{
    released++;
    array->release = NULL;
}

/* --- The producer of arrays. --- */

/// Return a small number, or a number near a limit of int64_t.
static int64_t choose_number(input_t *input)
{
    static const int64_t edges[] = {INT64_MIN,     INT64_MIN + 1,     -1,       0, INT64_MAX / 16,
                                    INT64_MAX / 8, INT64_MAX / 8 + 1, INT64_MAX};
    unsigned how = input_byte(input);
    return (how & 1) != 0 ? edges[how >> 1 & 7] : (int8_t)how / 2;
}

/// Return a valid format, or random text of letters that formats contain. The caller frees the
/// text.
static char *choose_format(input_t *input)
{
    static const char *const known[] = {
        "c",    "S",       "i",   "g",  "e",   "w:5", "d:5,2", "b",   "u",        "tdD",
        "tsn:", "tss:UTC", "tin", "+s", "ttu", "tDs", "tiD",   "w:0", "d:5,2,64", "d:5,-2,32"};
    static const char letters[] = "cCgwdts:,-0123469nmuDiM+x";
    unsigned how = input_byte(input);
    if ((how & 1) == 0) {
        return strdup(known[(how >> 1) % (sizeof(known) / sizeof(known[0]))]);
    }
    size_t length = (how >> 1) % LONGEST;
    char *text = calloc(length + 1, 1);
    for (size_t i = 0; text != NULL && i < length; i++) {
        text[i] = letters[input_byte(input) % (sizeof(letters) - 1)];
    }
    return text;
}

static const void *choose_data(input_t *input)
{
    const void *const places[] = {memory, memory + 1, NULL, (const void *)(UINTPTR_MAX - 100)};
    return places[input_byte(input) % 4];
}

/// Return a bitmap with a bit for each element up to the end of the array, or NULL if the array is
/// invalid or has more than BITS elements. memrt must not read a NULL bitmap. The caller frees the
/// bitmap.
static uint8_t *choose_bits(input_t *input, const struct ArrowArray *array)
{
    wide_t count = (wide_t)array->offset + array->length;
    if (array->offset < 0 || array->length < 0 || count > BITS) {
        return NULL;
    }
    size_t bytes = (size_t)(count + 7) / 8;
    uint8_t *bits = malloc(bytes);
    for (size_t i = 0; bits != NULL && i < bytes; i++) {
        bits[i] = input_byte(input);
    }
    return bits;
}

static void choose_column(input_t *input, column_t *out)
{
    unsigned how = input_byte(input);
    *out = (column_t){.format = choose_format(input)};
    HOLDS(out->format != NULL);
    out->schema = (struct ArrowSchema){.format = (how & 0x0F) == 0x0F ? NULL : out->format,
                                       .n_children = (how & 0x30) == 0x30,
                                       .release = end_schema};
    out->array = (struct ArrowArray){.length = choose_number(input),
                                     .null_count = choose_number(input),
                                     .offset = choose_number(input),
                                     .n_buffers = (how & 0xC0) == 0xC0 ? input_byte(input) % 4 : 2,
                                     .buffers = out->buffers,
                                     .release = end_array};
    out->buffers[1] = choose_data(input);
    out->bits = (how & 0x11) == 0x11 ? NULL : choose_bits(input, &out->array);
    out->buffers[0] = out->bits;
}

/* --- The independent check, in 128-bit numbers. --- */

/// Patterns of formats, with the bytes of an element.
static const struct {
    const char *pattern;
    wide_t width;
} formats[] = {
    {"^[cC]$", 1},
    {"^[sSe]$", 2},
    {"^([iIf]|tdD|tts|ttm|tiM)$", 4},
    {"^([lLg]|tdm|ttu|ttn|tD[smun]|tiD|ts[smun]:.*)$", 8},
    {"^tin$", 16},
    {"^d:0*[1-9][0-9]*,-?[0-9]+,0*32$", 4},
    {"^d:0*[1-9][0-9]*,-?[0-9]+,0*64$", 8},
    {"^d:0*[1-9][0-9]*,-?[0-9]+(,0*128)?$", 16},
    {"^d:0*[1-9][0-9]*,-?[0-9]+,0*256$", 32},
    {"^w:[0-9]+$", -1}, /* the format has the number of bytes */
};
#define FORMATS (sizeof(formats) / sizeof(formats[0]))

static bool is_like(const char *format, size_t index)
{
    static regex_t compiled[FORMATS];
    static bool ready[FORMATS];
    if (!ready[index]) {
        HOLDS(regcomp(&compiled[index], formats[index].pattern, REG_EXTENDED | REG_NOSUB) == 0);
        ready[index] = true;
    }
    return regexec(&compiled[index], format, 0, NULL, 0) == 0;
}

static wide_t width_of(const char *format)
{
    for (size_t i = 0; i < FORMATS; i++) {
        if (is_like(format, i)) {
            return formats[i].width >= 0 ? formats[i].width
                                         : (wide_t)strtoull(format + 2, NULL, 10);
        }
    }
    return 0;
}

static bool has_sound_numbers(const struct ArrowArray *array)
{
    return array->n_buffers == 2 && array->length >= 0 && array->offset >= 0 &&
           array->null_count >= -1 && array->null_count <= array->length;
}

static bool is_sound(const column_t *column, wide_t width, wide_t *first)
{
    const struct ArrowArray *array = &column->array;
    if (column->schema.format == NULL || column->schema.n_children != 0 || width <= 0 ||
        !has_sound_numbers(array)) {
        return false;
    }
    wide_t before = array->offset * width, bytes = array->length * width;
    *first = (wide_t)(uintptr_t)array->buffers[1] + before;
    bool lies = array->buffers[1] != NULL && bytes <= PTRDIFF_MAX && *first + bytes <= UINTPTR_MAX;
    return array->length == 0 || (lies && (array->null_count <= 0 || column->bits != NULL));
}

static int64_t count_nulls(const column_t *column)
{
    int64_t nulls = 0;
    for (int64_t i = 0; column->bits != NULL && i < column->array.length; i++) {
        int64_t bit = column->array.offset + i;
        nulls += (column->bits[bit / 8] >> bit % 8 & 1) == 0;
    }
    return column->array.null_count != 0 ? nulls : 0;
}

/* --- The result of memrt. --- */

/// Export the imported array again, and check that the exported array equals the imported one.
static void check_export(memrt_meminfo_t *mi, const memrt_arrow_view_t *found)
{
    memrt_arrow_view_t view = *found;
    struct ArrowSchema schema;
    struct ArrowArray array;
    view.validity = NULL; /* the bitmap belongs to no MemInfo, so memrt cannot export it */
    view.null_count = view.first_bit = 0;
    HOLDS(api->arrow_export(mi, &view, &schema, &array, NULL) == MEMRT_OK);
    HOLDS(strcmp(schema.format, found->format) == 0 && array.length == found->length);
    HOLDS(array.buffers[1] == api->get_data(mi) && array.offset == 0);
    schema.release(&schema);
    array.release(&array);
    HOLDS(api->refcount(mi) == 1);
}

static void expect_as_read(memrt_meminfo_t *mi, const column_t *column,
                           const memrt_arrow_view_t *view, wide_t width, wide_t first,
                           int64_t nulls)
{
    HOLDS(api->readonly(mi) && api->size(mi) == (size_t)(view->length * width));
    HOLDS(view->length == 0 || (wide_t)(uintptr_t)api->get_data(mi) == first);
    HOLDS(view->null_count == nulls && (view->validity != NULL) == (nulls != 0));
    HOLDS(nulls == 0 ||
          view->validity + view->first_bit / 8 == column->bits + column->array.offset / 8);
}

static void do_column(input_t *input)
{
    column_t column;
    memrt_arrow_view_t view = {.struct_size = sizeof(view)};
    memrt_meminfo_t *mi = NULL;
    const char *why = NULL;
    wide_t first = 0;
    choose_column(input, &column);
    wide_t width = width_of(column.format);
    bool sound = is_sound(&column, width, &first);
    int64_t nulls = sound ? count_nulls(&column) : 0;
    memrt_status_t status = api->arrow_adopt(&column.schema, &column.array, NULL, &view, &mi, &why);
    HOLDS((status == MEMRT_OK) == sound && (why == NULL) == sound && (mi != NULL) == sound);
    HOLDS((column.array.release == NULL) == sound && released == 0);
    if (sound) {
        expect_as_read(mi, &column, &view, width, first, nulls);
        check_export(mi, &view);
        api->release(mi);
        HOLDS(released == 1);
    }
    free(column.format);
    free(column.bits);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    input_t input = {bytes, bytes + size};
    api = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    while (input_is_left(&input)) {
        released = 0;
        do_column(&input);
    }
    return 0;
}
