#include "runtime/interop/arrow_export.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/size.h"
#include "runtime/config/fault_injection.h"
#include "runtime/interop/arrow_format.h"
#include "runtime/interop/refusal.h"
#include "runtime/meminfo/meminfo.h"
#include "runtime/meminfo/named.h"

#define FLAGS (MEMRT_ARROW_BOOL8 | MEMRT_ARROW_DEVICE)

/// Private data of an exported array: references and the buffer table.
typedef struct exported {
    memrt_meminfo_t *mi;
    memrt_meminfo_t *validity_owner; ///< NULL without a bitmap
    const void *buffers[2];
} exported_t;

static bool is_within_meminfo(const memrt_meminfo_t *mi, size_t offset, size_t bytes)
{
    size_t end;
    return memrt__size_add(offset, bytes, &end) && end <= mi->size;
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
                   : memrt__refuse(MEMRT_EINVAL, "an array with nulls must have a validity bitmap",
                                   why);
    }
    size_t start = (size_t)view->validity, data = (size_t)view->validity_owner->data;
    return start >= data && is_within_meminfo(view->validity_owner, start - data,
                                              memrt__arrow_bitmap_bytes((size_t)view->length))
               ? MEMRT_OK
               : memrt__refuse(MEMRT_EINVAL,
                               "the validity bitmap must lie inside the MemInfo of its owner", why);
}

static memrt_status_t check_view(const memrt_meminfo_t *mi, const memrt_arrow_view_t *view,
                                 const char **why)
{
    size_t width, bytes;
    if (view->struct_size < sizeof(*view) || (view->flags & ~FLAGS) != 0) {
        return memrt__refuse(MEMRT_EINVAL, MEMRT__BAD_OPTIONS, why);
    }
    memrt_status_t status = memrt__arrow_read_format(view->format, view->flags, &width, why);
    if (status != MEMRT_OK) {
        return status;
    }
    if (view->length < 0 || !memrt__size_mul((size_t)view->length, width, &bytes) ||
        !is_within_meminfo(mi, view->offset, bytes)) {
        return memrt__refuse(MEMRT_EINVAL, "an element would lie outside of the MemInfo", why);
    }
    return check_bitmap(view, why);
}

/// Check the memory of data and bitmap. An array does not record a memory kind. Therefore all
/// buffers must be in one kind of memory, and the caller must know the kind.
static memrt_status_t check_memory(const memrt_meminfo_t *mi, const memrt_arrow_view_t *view,
                                   const char **why)
{
    if (view->validity_owner != NULL &&
        memrt__meminfo_is_device(mi) != memrt__meminfo_is_device(view->validity_owner)) {
        return memrt__refuse(
            MEMRT_EINVAL, "elements and validity bitmap must be in the same kind of memory", why);
    }
    return (view->flags & MEMRT_ARROW_DEVICE) != 0 || !memrt__meminfo_is_device(mi)
               ? MEMRT_OK
               : memrt__refuse(MEMRT_ENOTSUP,
                               "the memory is on a CUDA device: use Arrow's device interface", why);
}

static void release_export(memrt_meminfo_t *mi)
{
    if (mi != NULL) {
        memrt__named_release(mi, MEMRT_HOLDER_EXPORT, MEMRT_ARROW_HOLDER);
    }
}

static void release_array(struct ArrowArray *array)
{
    exported_t *exported = array->private_data;
    MEMRT__ASSERT(exported != NULL && array->release == release_array);
    array->release = NULL; /* first: a destructor below may free `array` */
    release_export(exported->mi);
    release_export(exported->validity_owner);
    free(exported);
}

static void release_schema(struct ArrowSchema *schema)
{
    MEMRT__ASSERT(schema->release == release_schema);
    schema->release = NULL;
    free(schema->private_data);
}

static memrt_status_t acquire_export(memrt_meminfo_t *mi)
{
    return mi != NULL ? memrt__named_acquire(mi, MEMRT_HOLDER_EXPORT, MEMRT_ARROW_HOLDER)
                      : MEMRT_OK;
}

static memrt_status_t acquire_array_exports(exported_t *exported)
{
    memrt_status_t status = acquire_export(exported->mi);
    if (status == MEMRT_OK && (status = acquire_export(exported->validity_owner)) != MEMRT_OK) {
        release_export(exported->mi);
    }
    return status;
}

static memrt_status_t fill_array(memrt_meminfo_t *mi, const memrt_arrow_view_t *view,
                                 struct ArrowArray *out)
{
    exported_t *exported = memrt__fault_is_due() ? NULL : malloc(sizeof(*exported));
    if (exported == NULL) {
        return MEMRT_ENOMEM;
    }
    const char *first = view->offset != 0 ? (const char *)mi->data + view->offset : mi->data;
    *exported = (exported_t){mi, view->validity_owner, {view->validity, first}};
    memrt_status_t status = acquire_array_exports(exported);
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
    char *texts = memrt__fault_is_due() ? NULL : malloc(format_size + name_size);
    if (texts == NULL) {
        return MEMRT_ENOMEM;
    }
    bool is_bool = (view->flags & MEMRT_ARROW_BOOL8) != 0;
    *out = (struct ArrowSchema){.format = memcpy(texts, view->format, format_size),
                                .name = memcpy(texts + format_size, name, name_size),
                                .metadata = is_bool ? memrt__arrow_bool8_metadata : NULL,
                                .flags = view->validity != NULL ? ARROW_FLAG_NULLABLE : 0,
                                .release = release_schema,
                                .private_data = texts};
    return MEMRT_OK;
}

memrt_status_t memrt__arrow_export(memrt_meminfo_t *mi, const memrt_arrow_view_t *view,
                                   struct ArrowSchema *schema, struct ArrowArray *array,
                                   const char **why)
{
    struct ArrowArray exported_array;
    memrt_status_t status = check_view(mi, view, why);
    if (status == MEMRT_OK && array != NULL && (status = check_memory(mi, view, why)) == MEMRT_OK) {
        status = fill_array(mi, view, &exported_array);
    }
    if (status != MEMRT_OK) {
        return status;
    }
    if (schema != NULL && (status = fill_schema(view, schema)) != MEMRT_OK) {
        if (array != NULL) {
            release_array(&exported_array);
        }
        return status;
    }
    if (array != NULL) {
        *array = exported_array;
    }
    return MEMRT_OK;
}
