#include "interop/arrow_export_parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/device_sync.h"
#include "core/meminfo_object.h"
#include "support/errors.h"

/// Arguments for one array, borrowed from a tuple as memrt__arrow_take_parts describes arrays. Each
/// of the buffers is None, or a pair of a MemInfo and the bytes before the buffer.
typedef struct parts {
    const char *format;
    const char *name;
    int bool8;
    long long flags, length, nulls, offset;
    PyObject *buffers;
    PyObject *children;
    PyObject *dictionary;
} parts_t;

static int parse_parts(PyObject *tuple, parts_t *out)
{
    if (!PyTuple_Check(tuple)) {
        PyErr_Format(PyExc_TypeError, "parts must be a tuple, got %.200s", Py_TYPE(tuple)->tp_name);
        return -1;
    }
    return PyArg_ParseTuple(tuple, "sspLLLLO!O!O:parts", &out->format, &out->name, &out->bool8,
                            &out->flags, &out->length, &out->nulls, &out->offset, &PyTuple_Type,
                            &out->buffers, &PyTuple_Type, &out->children, &out->dictionary)
               ? 0
               : -1;
}

/* --- Schemas. --- */

#define EXTENSION_KEY "ARROW:extension:name"
#define BOOL8 "arrow.bool8"

/// Metadata of a field with bytes as truth values: a count of pairs, then each text after its
/// length. The texts have no zero byte.
static const struct __attribute__((packed)) {
    int32_t pairs, key_length;
    char key[sizeof(EXTENSION_KEY) - 1] __attribute__((nonstring));
    int32_t value_length;
    char value[sizeof(BOOL8) - 1] __attribute__((nonstring));
} bool8_metadata = {1, sizeof(EXTENSION_KEY) - 1, EXTENSION_KEY, sizeof(BOOL8) - 1, BOOL8};

/// Memory of a schema, with its dictionary. Children, pointers to the children, and texts follow.
/// The count does not depend on the schema, which the consumer holds.
typedef struct schema_block {
    size_t count;
    struct ArrowSchema dictionary;
    struct ArrowSchema children[];
} schema_block_t;

static void release_schema_if_owned(struct ArrowSchema *schema)
{
    if (schema->release != NULL) {
        schema->release(schema);
    }
}

static void release_schema(struct ArrowSchema *schema)
{
    schema_block_t *block = schema->private_data;
    schema->release = NULL;
    for (size_t i = 0; i < block->count; i++) {
        release_schema_if_owned(&block->children[i]);
    }
    release_schema_if_owned(&block->dictionary);
    free(block);
}

/// Fill in a schema like `like`, whose children and dictionary are released, so that the caller
/// fills them in. Returns -1 without memory, and fills in nothing.
static int fill_schema(const struct ArrowSchema *like, struct ArrowSchema *out)
{
    size_t count = (size_t)like->n_children;
    size_t format_size = strlen(like->format) + 1, name_size = strlen(like->name) + 1;
    size_t fixed = sizeof(schema_block_t) + count * (sizeof(*out) + sizeof(out));
    schema_block_t *block = calloc(1, fixed + format_size + name_size);
    if (block == NULL) {
        return -1;
    }
    block->count = count;
    struct ArrowSchema **pointers = (struct ArrowSchema **)&block->children[count];
    char *texts = (char *)&pointers[count];
    for (size_t i = 0; i < count; i++) {
        pointers[i] = &block->children[i];
    }
    *out = *like;
    out->format = memcpy(texts, like->format, format_size);
    out->name = memcpy(texts + format_size, like->name, name_size);
    out->children = count != 0 ? pointers : NULL;
    out->dictionary = like->dictionary != NULL ? &block->dictionary : NULL;
    out->release = release_schema;
    out->private_data = block;
    return 0;
}

int memrt__arrow_copy_schema(const struct ArrowSchema *schema, struct ArrowSchema *out)
{
    if (fill_schema(schema, out) < 0) {
        return -1;
    }
    int result = 0;
    for (int64_t i = 0; result == 0 && i < schema->n_children; i++) {
        result = memrt__arrow_copy_schema(schema->children[i], out->children[i]);
    }
    if (result == 0 && schema->dictionary != NULL) {
        result = memrt__arrow_copy_schema(schema->dictionary, out->dictionary);
    }
    if (result < 0) {
        release_schema(out);
    }
    return result;
}

static int build_schema_children(const parts_t *parts, const struct ArrowSchema *out)
{
    for (int64_t i = 0; i < out->n_children; i++) {
        if (memrt__arrow_build_schema(PyTuple_GET_ITEM(parts->children, i), out->children[i]) < 0) {
            return -1;
        }
    }
    return parts->dictionary != Py_None
               ? memrt__arrow_build_schema(parts->dictionary, out->dictionary)
               : 0;
}

int memrt__arrow_build_schema(PyObject *tuple, struct ArrowSchema *out)
{
    parts_t parts;
    if (parse_parts(tuple, &parts) < 0) {
        return -1;
    }
    const struct ArrowSchema like = {
        .format = parts.format,
        .name = parts.name,
        .metadata = parts.bool8 ? (const char *)&bool8_metadata : NULL,
        .flags = parts.flags,
        .n_children = PyTuple_GET_SIZE(parts.children),
        .dictionary = parts.dictionary != Py_None ? out : NULL,
    };
    if (fill_schema(&like, out) < 0) {
        PyErr_NoMemory();
        return -1;
    }
    if (build_schema_children(&parts, out) < 0) {
        release_schema(out);
        return -1;
    }
    return 0;
}

/* --- Arrays. --- */

/// Memory of an array, with its dictionary. Children, pointers to the children, buffers, and the
/// owners of the buffers follow. The counts do not depend on the array, which the consumer holds.
typedef struct array_block {
    size_t count, buffers;
    memrt_meminfo_t **owners; ///< one for each buffer; NULL: the buffer has no owner
    struct ArrowArray dictionary;
    struct ArrowArray children[];
} array_block_t;

static void release_array_if_owned(struct ArrowArray *array)
{
    if (array->release != NULL) {
        array->release(array);
    }
}

static void release_array(struct ArrowArray *array)
{
    array_block_t *block = array->private_data;
    array->release = NULL; /* first: a destructor below may free `array` */
    for (size_t i = 0; i < block->count; i++) {
        release_array_if_owned(&block->children[i]);
    }
    release_array_if_owned(&block->dictionary);
    for (size_t i = 0; i < block->buffers; i++) {
        if (block->owners[i] != NULL) {
            memrt__api()->release_as(block->owners[i], MEMRT_HOLDER_EXPORT, MEMRT_ARROW_HOLDER);
        }
    }
    free(block);
}

/// Fill in an array without buffers, children and dictionary: all are zero. -1 with MemoryError.
static int fill_array(const parts_t *parts, struct ArrowArray *out)
{
    size_t count = (size_t)PyTuple_GET_SIZE(parts->children);
    size_t buffers = (size_t)PyTuple_GET_SIZE(parts->buffers);
    array_block_t *block =
        calloc(1, sizeof(*block) + count * (sizeof(*out) + sizeof(out)) +
                      buffers * (sizeof(*out->buffers) + sizeof(*block->owners)));
    if (block == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    block->count = count;
    block->buffers = buffers;
    struct ArrowArray **pointers = (struct ArrowArray **)&block->children[count];
    const void **addresses = (const void **)&pointers[count];
    block->owners = (memrt_meminfo_t **)&addresses[buffers];
    for (size_t i = 0; i < count; i++) {
        pointers[i] = &block->children[i];
    }
    *out = (struct ArrowArray){
        .length = parts->length,
        .null_count = parts->nulls,
        .offset = parts->offset,
        .n_buffers = (int64_t)buffers,
        .n_children = (int64_t)count,
        .buffers = addresses,
        .children = count != 0 ? pointers : NULL,
        .dictionary = parts->dictionary != Py_None ? &block->dictionary : NULL,
        .release = release_array,
        .private_data = block,
    };
    return 0;
}

/// Acquire the MemInfo of a buffer, and set its address. -1 with an exception.
static int set_buffer(PyObject *pair, struct ArrowArray *out, Py_ssize_t index)
{
    memrt_meminfo_object_t *object;
    unsigned long long offset;
    if (!PyTuple_Check(pair)) {
        PyErr_Format(PyExc_TypeError, "buffer must be None or a tuple, got %.200s",
                     Py_TYPE(pair)->tp_name);
        return -1;
    }
    if (!PyArg_ParseTuple(pair, "O!K:buffer", memrt__binding.meminfo_type, &object, &offset)) {
        return -1;
    }
    memrt_meminfo_t *mi = memrt__meminfo_get(object);
    if (mi == NULL || memrt__device_prepare_host(mi) < 0) {
        return -1;
    }
    memrt_status_t status = memrt__api()->acquire_as(mi, MEMRT_HOLDER_EXPORT, MEMRT_ARROW_HOLDER);
    if (status != MEMRT_OK) {
        memrt__raise(status, "cannot export memory as an Arrow array");
        return -1;
    }
    ((array_block_t *)out->private_data)->owners[index] = mi;
    out->buffers[index] = (const char *)memrt__api()->get_data(mi) + offset;
    return 0;
}

static int set_buffers(const parts_t *parts, struct ArrowArray *out)
{
    static const int64_t nothing; /* offsets of an array without elements */
    for (Py_ssize_t i = 0; i < out->n_buffers; i++) {
        PyObject *pair = PyTuple_GET_ITEM(parts->buffers, i);
        if (pair == Py_None) {
            out->buffers[i] = i != 0 ? &nothing : NULL;
        } else if (set_buffer(pair, out, i) < 0) {
            return -1;
        }
    }
    return 0;
}

static int build_array_children(const parts_t *parts, const struct ArrowArray *out)
{
    for (int64_t i = 0; i < out->n_children; i++) {
        if (memrt__arrow_build_array(PyTuple_GET_ITEM(parts->children, i), out->children[i]) < 0) {
            return -1;
        }
    }
    return parts->dictionary != Py_None
               ? memrt__arrow_build_array(parts->dictionary, out->dictionary)
               : 0;
}

int memrt__arrow_build_array(PyObject *tuple, struct ArrowArray *out)
{
    parts_t parts;
    if (parse_parts(tuple, &parts) < 0 || fill_array(&parts, out) < 0) {
        return -1;
    }
    if (set_buffers(&parts, out) < 0 || build_array_children(&parts, out) < 0) {
        release_array(out);
        return -1;
    }
    return 0;
}
