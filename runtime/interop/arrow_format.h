#ifndef MEMRT_INTEROP_ARROW_FORMAT_H
#define MEMRT_INTEROP_ARROW_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/arrow.h>

/// Formats of Arrow elements, and the metadata of fields with truth values of a byte.

/// Check a format, and write the bytes of one element to `*width`.
memrt_status_t memrt__arrow_read_format(const char *format, uint64_t flags, size_t *width,
                                        const char **why);

/// Metadata of a field with bytes as truth values: the extension type arrow.bool8.
extern const char *const memrt__arrow_bool8_metadata;

/// Return whether metadata names the extension type arrow.bool8. `metadata` may be NULL.
bool memrt__arrow_is_bool8(const char *metadata);

/// Return the bytes of a validity bitmap.
static inline size_t memrt__arrow_bitmap_bytes(size_t bits)
{
    return bits / 8 + (bits % 8 != 0);
}

#endif
