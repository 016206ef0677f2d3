#include "runtime/arrow.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/failure.h"
#include "runtime/base/size.h"
#include "runtime/exchange.h"
#include "runtime/meminfo/meminfo.h"
#include "runtime/meminfo/named.h"

#define FLAGS (MEMRT_ARROW_BOOL8 | MEMRT_ARROW_DEVICE)

/* --- What elements are. --- */

/// Formats that have no parameters, and their bytes.
static const struct {
    char format[4];
    uint8_t width;
} plain_formats[] = {
    {"c", 1},   {"C", 1},   {"s", 2},   {"S", 2},   {"i", 4},   {"I", 4},   {"l", 8},   {"L", 8},
    {"e", 2},   {"f", 4},   {"g", 8},   {"tdD", 4}, {"tdm", 8}, {"tts", 4}, {"ttm", 4}, {"ttu", 8},
    {"ttn", 8}, {"tDs", 8}, {"tDm", 8}, {"tDu", 8}, {"tDn", 8}, {"tiM", 4}, {"tiD", 8}, {"tin", 16},
};

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/// Read a number of decimal digits and move on behind it. 0: there is none, or it is too large.
static size_t read_number(const char **text)
{
    size_t number = 0;
    for (; **text >= '0' && **text <= '9'; ++*text) {
        if (!memrt__size_mul(number, 10, &number) ||
            !memrt__size_add(number, (size_t)(**text - '0'), &number)) {
            return 0;
        }
    }
    return number;
}

/// Bytes of a decimal by what follows "d:": precision, scale and, unless they are 128, bits.
static size_t width_of_decimal(const char *text)
{
    if (read_number(&text) == 0 || *text++ != ',') {
        return 0;
    }
    text += *text == '-';
    const char *scale = text;
    (void)read_number(&text);
    if (text == scale) {
        return 0;
    }
    size_t bits = 128;
    if (*text == ',') {
        text++;
        bits = read_number(&text);
    }
    bool known = bits == 32 || bits == 64 || bits == 128 || bits == 256;
    return *text == '\0' && known ? bits / 8 : 0;
}

/// Bytes of one element; 0: it is not exchanged.
static size_t width_of(const char *format)
{
    for (size_t i = 0; i < sizeof(plain_formats) / sizeof(plain_formats[0]); i++) {
        if (strcmp(format, plain_formats[i].format) == 0) {
            return plain_formats[i].width;
        }
    }
    if (starts_with(format, "w:")) {
        const char *end = format + 2;
        size_t width = read_number(&end);
        return *end == '\0' ? width : 0;
    }
    if (starts_with(format, "ts") && format[2] != '\0' && strchr("smun", format[2]) != NULL) {
        return format[3] == ':' ? 8 : 0; /* a time zone may follow */
    }
    return starts_with(format, "d:") ? width_of_decimal(format + 2) : 0;
}

/// Bytes of one element into `*width`.
static memrt_status_t read_format(const char *format, uint64_t flags, size_t *width,
                                  const char **why)
{
    if (format == NULL) {
        return memrt__refuse(MEMRT_EINVAL, "there is no format", why);
    }
    *width = width_of(format);
    if (*width == 0) {
        return memrt__refuse(
            MEMRT_ENOTSUP,
            "elements of that format do not have the same whole number of bytes each, or "
            "are unknown",
            why);
    }
    if ((flags & MEMRT_ARROW_BOOL8) != 0 && strcmp(format, "c") != 0) {
        return memrt__refuse(MEMRT_EINVAL, "truth values of a byte have the format \"c\"", why);
    }
    return MEMRT_OK;
}

/* --- Metadata: a number of pairs of texts, each after its length. --- */

#define EXTENSION_KEY "ARROW:extension:name"
#define PARAMETERS_KEY "ARROW:extension:metadata"
#define BOOL8 "arrow.bool8"

/// What says of bytes that they are truth values.
static const struct __attribute__((packed)) {
    int32_t pairs;
    int32_t key_length;
    char key[sizeof(EXTENSION_KEY) - 1];
    int32_t value_length;
    char value[sizeof(BOOL8) - 1];
    int32_t parameters_length;
    char parameters[sizeof(PARAMETERS_KEY) - 1];
    int32_t nothing;
} bool8_metadata = {
    2,     sizeof(EXTENSION_KEY) - 1,  EXTENSION_KEY,  sizeof(BOOL8) - 1,
    BOOL8, sizeof(PARAMETERS_KEY) - 1, PARAMETERS_KEY, 0,
};

/// A part of metadata.
typedef struct text {
    const char *start;
    size_t length;
} text_t;

static bool is_text(text_t text, const char *other)
{
    return text.length == strlen(other) && memcmp(text.start, other, text.length) == 0;
}

/// Read a number and move on behind it.
static int32_t next_number(const char **place)
{
    int32_t number;
    memcpy(&number, *place, sizeof(number));
    *place += sizeof(number);
    return number;
}

/// Read a text and move on behind it; false: it has a negative length.
static bool next_text(const char **place, text_t *out)
{
    int32_t length = next_number(place);
    if (length < 0) {
        return false;
    }
    *out = (text_t){*place, (size_t)length};
    *place += length;
    return true;
}

static bool is_bool8(const char *metadata)
{
    text_t key, value;
    int32_t pairs = metadata != NULL ? next_number(&metadata) : 0;
    for (int32_t i = 0; i < pairs; i++) {
        if (!next_text(&metadata, &key) || !next_text(&metadata, &value)) {
            return false;
        }
        if (is_text(key, EXTENSION_KEY)) {
            return is_text(value, BOOL8);
        }
    }
    return false;
}

/* --- From a MemInfo to an array. --- */

/// What an exported array holds.
typedef struct exported {
    memrt_meminfo_t *mi;
    memrt_meminfo_t *validity_owner; ///< or NULL
    const void *buffers[2];
} exported_t;

static bool lies_in(const memrt_meminfo_t *mi, size_t offset, size_t bytes)
{
    size_t end;
    return memrt__size_add(offset, bytes, &end) && end <= mi->size;
}

static size_t bitmap_bytes(size_t bits)
{
    return bits / 8 + (bits % 8 != 0);
}

static memrt_status_t check_bitmap(const memrt_arrow_view_t *view, const char **why)
{
    if (view->null_count < -1 || view->null_count > view->length || view->first_bit != 0 ||
        (view->validity == NULL) != (view->validity_owner == NULL)) {
        return memrt__refuse(MEMRT_EINVAL, MEMRT__BAD_OPTIONS, why);
    }
    if (view->validity == NULL) {
        return view->null_count <= 0
                   ? MEMRT_OK
                   : memrt__refuse(MEMRT_EINVAL, "there are nulls and no validity bitmap", why);
    }
    size_t start = (size_t)view->validity, data = (size_t)view->validity_owner->data;
    return start >= data &&
                   lies_in(view->validity_owner, start - data, bitmap_bytes((size_t)view->length))
               ? MEMRT_OK
               : memrt__refuse(MEMRT_EINVAL, "the validity bitmap would lie outside of its MemInfo",
                               why);
}

static memrt_status_t check_view(const memrt_meminfo_t *mi, const memrt_arrow_view_t *view,
                                 const char **why)
{
    size_t width, bytes;
    if (view->struct_size < sizeof(*view) || (view->flags & ~FLAGS) != 0) {
        return memrt__refuse(MEMRT_EINVAL, MEMRT__BAD_OPTIONS, why);
    }
    memrt_status_t status = read_format(view->format, view->flags, &width, why);
    if (status != MEMRT_OK) {
        return status;
    }
    if (view->length < 0 || !memrt__size_mul((size_t)view->length, width, &bytes) ||
        !lies_in(mi, view->offset, bytes)) {
        return memrt__refuse(MEMRT_EINVAL, "an element would lie outside of the MemInfo", why);
    }
    return check_bitmap(view, why);
}

/// An array does not say where its buffers are: all are in one memory, and the caller knows which.
static memrt_status_t check_memory(const memrt_meminfo_t *mi, const memrt_arrow_view_t *view,
                                   const char **why)
{
    if (view->validity_owner != NULL &&
        memrt__meminfo_is_device(mi) != memrt__meminfo_is_device(view->validity_owner)) {
        return memrt__refuse(MEMRT_EINVAL,
                             "the elements and the validity bitmap are not in one memory", why);
    }
    return (view->flags & MEMRT_ARROW_DEVICE) != 0 || !memrt__meminfo_is_device(mi)
               ? MEMRT_OK
               : memrt__refuse(
                     MEMRT_ENOTSUP,
                     "the memory is a CUDA device's, as only Arrow's device interface can say",
                     why);
}

static void let_go(memrt_meminfo_t *mi)
{
    if (mi != NULL) {
        memrt__named_release(mi, MEMRT_HOLDER_EXPORT, MEMRT_ARROW_HOLDER);
    }
}

static void release_array(struct ArrowArray *array)
{
    exported_t *exported = array->private_data;
    array->release = NULL; /* before others run, by whose doing its memory may go */
    let_go(exported->mi);
    let_go(exported->validity_owner);
    free(exported);
}

static void release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
    free(schema->private_data);
}

static memrt_status_t hold(memrt_meminfo_t *mi)
{
    return mi != NULL ? memrt__named_acquire(mi, MEMRT_HOLDER_EXPORT, MEMRT_ARROW_HOLDER)
                      : MEMRT_OK;
}

static memrt_status_t hold_both(exported_t *exported)
{
    memrt_status_t status = hold(exported->mi);
    if (status == MEMRT_OK && (status = hold(exported->validity_owner)) != MEMRT_OK) {
        let_go(exported->mi);
    }
    return status;
}

static memrt_status_t fill_array(memrt_meminfo_t *mi, const memrt_arrow_view_t *view,
                                 struct ArrowArray *out)
{
    exported_t *exported = memrt__failure_due() ? NULL : malloc(sizeof(*exported));
    if (exported == NULL) {
        return MEMRT_ENOMEM;
    }
    const char *first = view->offset != 0 ? (const char *)mi->data + view->offset : mi->data;
    *exported = (exported_t){mi, view->validity_owner, {view->validity, first}};
    memrt_status_t status = hold_both(exported);
    if (status != MEMRT_OK) {
        free(exported);
        return status;
    }
    *out = (struct ArrowArray){.length = view->length,
                               .null_count = view->validity != NULL ? view->null_count : 0,
                               .n_buffers = 2,
                               .buffers = exported->buffers,
                               .release = release_array,
                               .private_data = exported};
    return MEMRT_OK;
}

static memrt_status_t fill_schema(const memrt_arrow_view_t *view, struct ArrowSchema *out)
{
    const char *name = view->name != NULL ? view->name : "";
    size_t format_size = strlen(view->format) + 1, name_size = strlen(name) + 1;
    char *texts = memrt__failure_due() ? NULL : malloc(format_size + name_size);
    if (texts == NULL) {
        return MEMRT_ENOMEM;
    }
    bool is_bool = (view->flags & MEMRT_ARROW_BOOL8) != 0;
    *out = (struct ArrowSchema){.format = memcpy(texts, view->format, format_size),
                                .name = memcpy(texts + format_size, name, name_size),
                                .metadata = is_bool ? (const char *)&bool8_metadata : NULL,
                                .flags = view->validity != NULL ? ARROW_FLAG_NULLABLE : 0,
                                .release = release_schema,
                                .private_data = texts};
    return MEMRT_OK;
}

memrt_status_t memrt__arrow_export(memrt_meminfo_t *mi, const memrt_arrow_view_t *view,
                                   struct ArrowSchema *schema, struct ArrowArray *array,
                                   const char **why)
{
    struct ArrowArray made;
    memrt_status_t status = check_view(mi, view, why);
    if (status == MEMRT_OK && array != NULL && (status = check_memory(mi, view, why)) == MEMRT_OK) {
        status = fill_array(mi, view, &made);
    }
    if (status != MEMRT_OK) {
        return status;
    }
    if (schema != NULL && (status = fill_schema(view, schema)) != MEMRT_OK) {
        if (array != NULL) {
            release_array(&made);
        }
        return status;
    }
    if (array != NULL) {
        *array = made;
    }
    return MEMRT_OK;
}

/* --- From an array to a MemInfo. --- */

/// Where the elements of an array are.
typedef struct place {
    size_t first; ///< address of the first one
    size_t bytes;
} place_t;

static memrt_status_t read_schema(const struct ArrowSchema *schema, memrt_arrow_view_t *out,
                                  size_t *width, const char **why)
{
    if (schema->release == NULL) {
        return memrt__refuse(MEMRT_EINVAL, "the schema was released", why);
    }
    if (schema->dictionary != NULL || schema->n_children != 0) {
        return memrt__refuse(MEMRT_ENOTSUP,
                             "elements that are in a dictionary or have children are not "
                             "exchanged",
                             why);
    }
    *out = (memrt_arrow_view_t){.struct_size = sizeof(*out),
                                .format = schema->format,
                                .name = schema->name,
                                .flags = is_bool8(schema->metadata) ? MEMRT_ARROW_BOOL8 : 0};
    return read_format(schema->format, out->flags, width, why);
}

static memrt_status_t check_array(const struct ArrowArray *array, const char **why)
{
    if (array->release == NULL) {
        return memrt__refuse(MEMRT_EINVAL, "the array was released", why);
    }
    if (array->dictionary != NULL || array->n_children != 0 || array->n_buffers != 2 ||
        array->buffers == NULL) {
        return memrt__refuse(MEMRT_EINVAL, "the array has not the buffers that its format asks for",
                             why);
    }
    if (array->length < 0 || array->offset < 0 || array->null_count < -1 ||
        array->null_count > array->length) {
        return memrt__refuse(MEMRT_EINVAL, "a length, an offset or a number of nulls cannot be",
                             why);
    }
    return MEMRT_OK;
}

static memrt_status_t locate(const struct ArrowArray *array, size_t width, place_t *out,
                             const char **why)
{
    size_t start = (size_t)array->buffers[1], before, end;
    *out = (place_t){start, 0};
    if (array->length == 0) {
        return MEMRT_OK;
    }
    if (start == 0) {
        return memrt__refuse(MEMRT_EINVAL, "there are elements and no data", why);
    }
    if (!memrt__size_mul((size_t)array->offset, width, &before) ||
        !memrt__size_mul((size_t)array->length, width, &out->bytes) || out->bytes > PTRDIFF_MAX ||
        !memrt__size_add(start, before, &out->first) ||
        !memrt__size_add(out->first, out->bytes, &end)) {
        return memrt__refuse(MEMRT_EINVAL, "elements would lie outside of the address space", why);
    }
    return MEMRT_OK;
}

/// How many of `count` bits, from bit `first` of the first byte on, are 0.
static int64_t count_zeros(const uint8_t *bits, int64_t first, int64_t count)
{
    int64_t zeros = 0;
    for (int64_t i = first; i < first + count;) {
        if (i % 8 == 0 && first + count - i >= 8) {
            zeros += 8 - __builtin_popcount(bits[i / 8]);
            i += 8;
        } else {
            zeros += (bits[i / 8] >> (i % 8) & 1) == 0;
            i++;
        }
    }
    return zeros;
}

static memrt_status_t read_validity(const struct ArrowArray *array, memrt_arrow_view_t *out,
                                    const char **why)
{
    size_t start = (size_t)array->buffers[0], end;
    if (array->null_count == 0 || array->length == 0) {
        return MEMRT_OK;
    }
    if (start == 0) {
        return array->null_count < 0
                   ? MEMRT_OK
                   : memrt__refuse(MEMRT_EINVAL, "there are nulls and no validity bitmap", why);
    }
    size_t bits_end = (size_t)array->offset + (size_t)array->length; /* of half the range each */
    if (!memrt__size_add(start, bitmap_bytes(bits_end), &end)) {
        return memrt__refuse(MEMRT_EINVAL,
                             "the validity bitmap would lie outside of the address space", why);
    }
    const uint8_t *bits = (const uint8_t *)array->buffers[0] + array->offset / 8;
    out->first_bit = array->offset % 8;
    out->null_count = count_zeros(bits, out->first_bit, array->length);
    out->validity = out->null_count != 0 ? bits : NULL;
    return MEMRT_OK;
}

static memrt_status_t examine(const struct ArrowSchema *schema, const struct ArrowArray *array,
                              memrt_arrow_view_t *view, place_t *place, const char **why)
{
    size_t width;
    memrt_status_t status = read_schema(schema, view, &width, why);
    if (status == MEMRT_OK && (status = check_array(array, why)) == MEMRT_OK &&
        (status = locate(array, width, place, why)) == MEMRT_OK) {
        view->length = array->length;
        status = read_validity(array, view, why);
    }
    return status;
}

/// The end of a MemInfo over an array that was moved.
static void give_back(void *data, size_t size, void *info)
{
    struct ArrowArray *array = info;
    (void)data;
    (void)size;
    array->release(array);
    free(array);
}

/// A copy of the array, for give_back. NULL: no memory.
static struct ArrowArray *copy_of(const struct ArrowArray *array)
{
    struct ArrowArray *copy = memrt__failure_due() ? NULL : malloc(sizeof(*copy));
    if (copy != NULL) {
        *copy = *array;
    }
    return copy;
}

static memrt_status_t adopt(struct ArrowArray *array, const place_t *place,
                            memrt_new_options_t *options, memrt_meminfo_t **out)
{
    struct ArrowArray *moved = NULL;
    if (options->dtor == NULL) {
        moved = copy_of(array);
        if (moved == NULL) {
            return MEMRT_ENOMEM;
        }
        options->dtor = give_back;
        options->dtor_info = moved;
    }
    memrt_status_t status = memrt__meminfo_adopt((void *)place->first, place->bytes, options, out);
    if (status != MEMRT_OK) {
        free(moved);
    } else if (moved != NULL) {
        array->release = NULL;
    }
    return status;
}

memrt_status_t memrt__arrow_adopt(const struct ArrowSchema *schema, struct ArrowArray *array,
                                  const memrt_new_options_t *options, memrt_arrow_view_t *view,
                                  memrt_meminfo_t **out, const char **why)
{
    memrt_new_options_t room;
    memrt_arrow_view_t found;
    place_t place;
    memrt_status_t status = memrt__meminfo_options(options, &room, &options);
    if (status != MEMRT_OK || view->struct_size < sizeof(*view)) {
        return memrt__refuse(MEMRT_EINVAL, MEMRT__BAD_OPTIONS, why);
    }
    status = examine(schema, array, &found, &place, why);
    if (status != MEMRT_OK) {
        return status;
    }
    room = *options;
    room.struct_size = sizeof(room);
    room.readonly = 1;
    status = adopt(array, &place, &room, out);
    if (status == MEMRT_OK) {
        *view = found;
    }
    return status == MEMRT_EINVAL ? memrt__refuse(status, MEMRT__BAD_OPTIONS, why) : status;
}
