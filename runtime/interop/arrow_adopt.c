#include "runtime/interop/arrow_adopt.h"

#include <stdlib.h>

#include "runtime/base/size.h"
#include "runtime/config/fault_injection.h"
#include "runtime/interop/arrow_format.h"
#include "runtime/interop/refusal.h"
#include "runtime/meminfo/meminfo.h"

/// Position of an array's elements in memory.
typedef struct position {
    size_t first; ///< address of the first element
    size_t bytes;
} position_t;

static memrt_status_t read_schema(const struct ArrowSchema *schema, memrt_arrow_view_t *out,
                                  size_t *width, const char **why)
{
    if (schema->release == NULL) {
        return memrt__refuse(MEMRT_EINVAL, "the schema was released", why);
    }
    if (schema->dictionary != NULL || schema->n_children != 0) {
        return memrt__refuse(MEMRT_ENOTSUP,
                             "an array with a dictionary or with children is not supported", why);
    }
    *out = (memrt_arrow_view_t){.struct_size = sizeof(*out),
                                .format = schema->format,
                                .name = schema->name,
                                .flags = memrt__arrow_is_bool8(schema->metadata) ? MEMRT_ARROW_BOOL8
                                                                                 : 0};
    return memrt__arrow_read_format(schema->format, out->flags, width, why);
}

static memrt_status_t check_array(const struct ArrowArray *array, const char **why)
{
    if (array->release == NULL) {
        return memrt__refuse(MEMRT_EINVAL, "the array was released", why);
    }
    if (array->dictionary != NULL || array->n_children != 0 || array->n_buffers != 2 ||
        array->buffers == NULL) {
        return memrt__refuse(MEMRT_EINVAL,
                             "the array must have two buffers, and no dictionary or children", why);
    }
    if (array->length < 0 || array->offset < 0 || array->null_count < -1 ||
        array->null_count > array->length) {
        return memrt__refuse(
            MEMRT_EINVAL,
            "length and offset must not be negative, and the number of nulls must be from -1 to "
            "the length",
            why);
    }
    return MEMRT_OK;
}

static memrt_status_t locate_elements(const struct ArrowArray *array, size_t width, position_t *out,
                                      const char **why)
{
    size_t start = (size_t)array->buffers[1], before, end;
    *out = (position_t){start, 0};
    if (array->length == 0) {
        return MEMRT_OK;
    }
    if (start == 0) {
        return memrt__refuse(MEMRT_EINVAL, "the array has elements but no data", why);
    }
    if (!memrt__size_mul((size_t)array->offset, width, &before) ||
        !memrt__size_mul((size_t)array->length, width, &out->bytes) || out->bytes > PTRDIFF_MAX ||
        !memrt__size_add(start, before, &out->first) ||
        !memrt__size_add(out->first, out->bytes, &end)) {
        return memrt__refuse(MEMRT_EINVAL, "elements would lie outside of the address space", why);
    }
    return MEMRT_OK;
}

/// Return the number of 0 bits among `count` bits, starting with bit `first` of the first byte.
static int64_t count_zero_bits(const uint8_t *bits, int64_t first, int64_t count)
{
    int64_t zeros = 0;
    MEMRT__ASSERT(first >= 0 && first < 8 && count > 0);
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
                   : memrt__refuse(MEMRT_EINVAL, "an array with nulls must have a validity bitmap",
                                   why);
    }
    size_t bits_end = (size_t)array->offset + (size_t)array->length; /* each is below 2^63 */
    if (!memrt__size_add(start, memrt__arrow_bitmap_bytes(bits_end), &end)) {
        return memrt__refuse(MEMRT_EINVAL,
                             "the validity bitmap would lie outside of the address space", why);
    }
    const uint8_t *bits = (const uint8_t *)array->buffers[0] + array->offset / 8;
    out->first_bit = array->offset % 8;
    out->null_count = count_zero_bits(bits, out->first_bit, array->length);
    MEMRT__ASSERT(out->null_count >= 0 && out->null_count <= array->length);
    out->validity = out->null_count != 0 ? bits : NULL;
    return MEMRT_OK;
}

static memrt_status_t read_array(const struct ArrowSchema *schema, const struct ArrowArray *array,
                                 memrt_arrow_view_t *view, position_t *position, const char **why)
{
    size_t width;
    memrt_status_t status = read_schema(schema, view, &width, why);
    if (status == MEMRT_OK && (status = check_array(array, why)) == MEMRT_OK &&
        (status = locate_elements(array, width, position, why)) == MEMRT_OK) {
        view->length = array->length;
        status = read_validity(array, view, why);
    }
    return status;
}

/// Destructor of a MemInfo over a moved array: release the array and free the copy.
static void release_adopted_array(void *data, size_t size, void *info)
{
    struct ArrowArray *array = info;
    (void)data;
    (void)size;
    array->release(array);
    free(array);
}

/// Return a heap copy of the array for release_adopted_array(), or NULL without memory.
static struct ArrowArray *copy_array(const struct ArrowArray *array)
{
    struct ArrowArray *copy = memrt__fault_is_due() ? NULL : malloc(sizeof(*copy));
    if (copy != NULL) {
        *copy = *array;
    }
    return copy;
}

static memrt_status_t adopt_array(struct ArrowArray *array, const position_t *position,
                                  memrt_new_options_t *options, memrt_meminfo_t **out)
{
    struct ArrowArray *moved = NULL;
    if (options->dtor == NULL) {
        moved = copy_array(array);
        if (moved == NULL) {
            return MEMRT_ENOMEM;
        }
        options->dtor = release_adopted_array;
        options->dtor_info = moved;
    }
    memrt_status_t status =
        memrt__meminfo_adopt((void *)position->first, position->bytes, options, out);
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
    position_t position;
    memrt_status_t status = memrt__meminfo_options(options, &room, &options);
    if (status != MEMRT_OK || view->struct_size < sizeof(*view)) {
        return memrt__refuse(MEMRT_EINVAL, MEMRT__BAD_OPTIONS, why);
    }
    status = read_array(schema, array, &found, &position, why);
    if (status != MEMRT_OK) {
        return status;
    }
    room = *options;
    room.struct_size = sizeof(room);
    room.readonly = 1;
    status = adopt_array(array, &position, &room, out);
    if (status == MEMRT_OK) {
        *view = found;
    }
    return status == MEMRT_EINVAL ? memrt__refuse(status, MEMRT__BAD_OPTIONS, why) : status;
}
