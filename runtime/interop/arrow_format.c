#include "runtime/interop/arrow_format.h"

#include <string.h>

#include "runtime/base/compiler.h"
#include "runtime/base/size.h"
#include "runtime/interop/refusal.h"

/// Formats without parameters, and their size in bytes.
static const struct {
    char format[4];
    uint8_t width;
} plain_formats[] = {
    {"c", 1},   {"C", 1},   {"s", 2},   {"S", 2},   {"i", 4},   {"I", 4},   {"l", 8},   {"L", 8},
    {"e", 2},   {"f", 4},   {"g", 8},   {"tdD", 4}, {"tdm", 8}, {"tts", 4}, {"ttm", 4}, {"ttu", 8},
    {"ttn", 8}, {"tDs", 8}, {"tDm", 8}, {"tDu", 8}, {"tDn", 8}, {"tiM", 4}, {"tiD", 8}, {"tin", 16},
};

static bool has_prefix(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/// Read a number of decimal digits and advance `*text` behind the digits. Returns 0 without digits,
/// and on overflow.
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

/// Return the bytes of a decimal from the text behind "d:": precision, scale and optional bits. The
/// default is 128 bits. Returns 0 for a bad format.
static size_t parse_decimal_width(const char *text)
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

/// Return the bytes of one element, or 0 if memrt does not exchange the format.
static size_t get_format_width(const char *format)
{
    for (size_t i = 0; i < sizeof(plain_formats) / sizeof(plain_formats[0]); i++) {
        if (strcmp(format, plain_formats[i].format) == 0) {
            return plain_formats[i].width;
        }
    }
    if (has_prefix(format, "w:")) {
        const char *end = format + 2;
        size_t width = read_number(&end);
        return *end == '\0' ? width : 0;
    }
    if (has_prefix(format, "ts") && format[2] != '\0' && strchr("smun", format[2]) != NULL) {
        return format[3] == ':' ? 8 : 0; /* a time zone may follow */
    }
    return has_prefix(format, "d:") ? parse_decimal_width(format + 2) : 0;
}

memrt_status_t memrt__arrow_read_format(const char *format, uint64_t flags, size_t *width,
                                        const char **why)
{
    if (format == NULL) {
        return memrt__refuse(MEMRT_EINVAL, "the format must not be NULL", why);
    }
    *width = get_format_width(format);
    if (*width == 0) {
        return memrt__refuse(
            MEMRT_ENOTSUP,
            "the format must be a known format whose elements all have the same whole number of "
            "bytes",
            why);
    }
    if ((flags & MEMRT_ARROW_BOOL8) != 0 && strcmp(format, "c") != 0) {
        return memrt__refuse(MEMRT_EINVAL, "the format of truth values of a byte must be \"c\"",
                             why);
    }
    return MEMRT_OK;
}

/* --- Metadata: a count, then pairs of key and value, each text after its length. --- */

#define EXTENSION_KEY "ARROW:extension:name"
#define PARAMETERS_KEY "ARROW:extension:metadata"
#define BOOL8 "arrow.bool8"

/// Metadata of a field with bytes as truth values: the extension type arrow.bool8.
static const struct __attribute__((packed)) {
    int32_t pairs;
    int32_t key_length;
    char key[sizeof(EXTENSION_KEY) - 1] MEMRT__NONSTRING;
    int32_t value_length;
    char value[sizeof(BOOL8) - 1] MEMRT__NONSTRING;
    int32_t parameters_length;
    char parameters[sizeof(PARAMETERS_KEY) - 1] MEMRT__NONSTRING;
    int32_t nothing;
} bool8_metadata = {
    2,     sizeof(EXTENSION_KEY) - 1,  EXTENSION_KEY,  sizeof(BOOL8) - 1,
    BOOL8, sizeof(PARAMETERS_KEY) - 1, PARAMETERS_KEY, 0,
};

const char *const memrt__arrow_bool8_metadata = (const char *)&bool8_metadata;

/// A text inside metadata, without NUL.
typedef struct text {
    const char *start;
    size_t length;
} text_t;

static bool is_equal_text(text_t text, const char *other)
{
    return text.length == strlen(other) && memcmp(text.start, other, text.length) == 0;
}

/// Read a 32-bit number and advance `*position` behind the number.
static int32_t read_next_number(const char **position)
{
    int32_t number;
    memcpy(&number, *position, sizeof(number));
    *position += sizeof(number);
    return number;
}

/// Read a text and advance `*position` behind the text. Returns false for a negative length.
static bool read_next_text(const char **position, text_t *out)
{
    int32_t length = read_next_number(position);
    if (length < 0) {
        return false;
    }
    *out = (text_t){*position, (size_t)length};
    *position += length;
    return true;
}

bool memrt__arrow_is_bool8(const char *metadata)
{
    text_t key, value;
    int32_t pairs = metadata != NULL ? read_next_number(&metadata) : 0;
    for (int32_t i = 0; i < pairs; i++) {
        if (!read_next_text(&metadata, &key) || !read_next_text(&metadata, &value)) {
            return false;
        }
        if (is_equal_text(key, EXTENSION_KEY)) {
            return is_equal_text(value, BOOL8);
        }
    }
    return false;
}
