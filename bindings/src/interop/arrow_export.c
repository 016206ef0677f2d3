#include "interop/arrow_export.h"

#include <errno.h>
#include <stdlib.h>

#include "core/device_sync.h"
#include "interop/arrow_capsule.h"
#include "interop/arrow_export_parts.h"
#include "support/arguments.h"
#include "support/errors.h"

/// Fill the structs of the capsules. `array` may be NULL. -1 with an exception.
static int fill_structs(memrt_meminfo_t *mi, const memrt_arrow_view_t *view,
                        struct ArrowSchema *schema, struct ArrowArray *array)
{
    const char *why = NULL;
    memrt_status_t status = memrt__api()->arrow_export(mi, view, schema, array, &why);
    if (status != MEMRT_OK) {
        memrt__raise_refusal(status, "cannot export memory as an Arrow array", why);
        return -1;
    }
    return 0;
}

/// Set the device of the array, which only a device array can express. Waits for all pending work
/// on the memory, so the array needs no event. -1 with an exception.
static int set_array_device(const memrt_meminfo_t *mi, memrt_arrow_view_t *view,
                            struct ArrowDeviceArray *out)
{
    static const ArrowDeviceType types[] = {
        [MEMRT_MEMORY_DEVICE] = ARROW_DEVICE_CUDA,
        [MEMRT_MEMORY_MANAGED] = ARROW_DEVICE_CUDA_MANAGED,
        [MEMRT_MEMORY_PINNED] = ARROW_DEVICE_CUDA_HOST,
    };
    memrt_cuda_info_t info;
    out->device_type = ARROW_DEVICE_CPU;
    out->device_id = -1; /* the CPU has no device number */
    if (!memrt__device_get_info(mi, &info)) {
        return 0;
    }
    view->flags |= MEMRT_ARROW_DEVICE;
    out->device_type = types[info.memory];
    out->device_id = info.device;
    return memrt__device_wait(&info);
}

/// Return the capsules of `__arrow_c_array__`, or with `device` of `__arrow_c_device_array__`. NULL
/// with an exception.
static PyObject *export_capsules(memrt_meminfo_t *mi, memrt_arrow_view_t *view, int device)
{
    struct ArrowSchema *schema;
    struct ArrowDeviceArray *array;
    PyObject *capsules[2] = {memrt__arrow_capsule_new_schema(&schema), NULL};
    if (capsules[0] != NULL) {
        capsules[1] = memrt__arrow_capsule_new_array(
            device ? MEMRT_ARROW_DEVICE_ARRAY : MEMRT_ARROW_ARRAY, &array);
    }
    if (capsules[1] == NULL ||
        (device ? set_array_device(mi, view, array) : memrt__device_prepare_host(mi)) < 0 ||
        fill_structs(mi, view, schema, &array->array) < 0) {
        Py_XDECREF(capsules[0]);
        Py_XDECREF(capsules[1]);
        return NULL;
    }
    return Py_BuildValue("(NN)", capsules[0], capsules[1]);
}

/// Return a view with every byte of a MemInfo as an element (format "C", uint8).
static memrt_arrow_view_t describe_bytes(const memrt_meminfo_t *mi)
{
    return (memrt_arrow_view_t){.struct_size = sizeof(memrt_arrow_view_t),
                                .format = "C",
                                .length = (int64_t)memrt__api()->size(mi)};
}

PyObject *memrt__arrow_schema_of(memrt_meminfo_object_t *self, PyObject *unused)
{
    struct ArrowSchema *schema;
    (void)unused;
    memrt_meminfo_t *mi = memrt__meminfo_get(self);
    PyObject *capsule = mi != NULL ? memrt__arrow_capsule_new_schema(&schema) : NULL;
    if (capsule == NULL) {
        return NULL;
    }
    memrt_arrow_view_t view = describe_bytes(mi);
    if (fill_structs(mi, &view, schema, NULL) < 0) {
        Py_CLEAR(capsule);
    }
    return capsule;
}

/// Export all bytes, whatever schema was requested. Arrow's PyCapsule interface treats the
/// requested schema as a wish.
static PyObject *export_bytes(memrt_meminfo_object_t *self, int device)
{
    memrt_meminfo_t *mi = memrt__meminfo_get(self);
    if (mi == NULL) {
        return NULL;
    }
    memrt_arrow_view_t view = describe_bytes(mi);
    return export_capsules(mi, &view, device);
}

PyObject *memrt__arrow_array_of(memrt_meminfo_object_t *self, PyObject *const *args,
                                Py_ssize_t count, PyObject *names)
{
    static const char *const keywords[] = {"requested_schema"};
    static memrt_signature_t signature = {
        .function = "__arrow_c_array__", .keywords = keywords, .total = 1, .positional = 1};
    PyObject *requested;
    return memrt__arguments(&signature, args, count, names, &requested) == 0 ? export_bytes(self, 0)
                                                                             : NULL;
}

/// Check the arguments. Unknown keywords are accepted if their value is None, since later versions
/// of the interface may add keywords.
static int check_device_arguments(PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    Py_ssize_t named = names != NULL ? PyTuple_GET_SIZE(names) : 0;
    if (count > 1) {
        PyErr_SetString(PyExc_TypeError,
                        "__arrow_c_device_array__() takes at most 1 positional argument");
        return -1;
    }
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        if (args[count + i] != Py_None &&
            PyUnicode_CompareWithASCIIString(name, "requested_schema") != 0) {
            PyErr_Format(PyExc_NotImplementedError,
                         "__arrow_c_device_array__() does not support the keyword %R", name);
            return -1;
        }
    }
    return 0;
}

PyObject *memrt__arrow_device_array_of(memrt_meminfo_object_t *self, PyObject *const *args,
                                       Py_ssize_t count, PyObject *names)
{
    return check_device_arguments(args, count, names) == 0 ? export_bytes(self, 1) : NULL;
}

/// Read the validity bitmap, a MemInfo or None, into the view. -1 with an exception.
static int read_bitmap(PyObject *bitmap, memrt_arrow_view_t *out)
{
    if (bitmap == Py_None) {
        return 0;
    }
    if (!memrt__meminfo_check(bitmap)) {
        PyErr_Format(PyExc_TypeError, "bitmap must be a memrt.MemInfo or None, got %.200s",
                     Py_TYPE(bitmap)->tp_name);
        return -1;
    }
    out->validity_owner = memrt__meminfo_get((memrt_meminfo_object_t *)bitmap);
    if (out->validity_owner == NULL) {
        return -1;
    }
    out->validity = memrt__api()->get_data(out->validity_owner);
    return 0;
}

static PyObject *export_arrow(PyObject *module, PyObject *args)
{
    memrt_arrow_view_t view = {.struct_size = sizeof(view)};
    memrt_meminfo_object_t *base;
    PyObject *bitmap;
    unsigned long long offset;
    long long length, nulls;
    int bool8, device;
    (void)module;
    if (!PyArg_ParseTuple(args, "(O!KsLpsOL)p:export_arrow", memrt__binding.meminfo_type, &base,
                          &offset, &view.format, &length, &bool8, &view.name, &bitmap, &nulls,
                          &device) ||
        read_bitmap(bitmap, &view) < 0) {
        return NULL;
    }
    view.offset = offset;
    view.length = length;
    view.null_count = nulls;
    view.flags = bool8 ? MEMRT_ARROW_BOOL8 : 0;
    memrt_meminfo_t *mi = memrt__meminfo_get(base);
    return mi != NULL ? export_capsules(mi, &view, device) : NULL;
}

/* --- Arrays of any type. --- */

static PyObject *export_parts(PyObject *module, PyObject *args)
{
    PyObject *parts;
    int device;
    struct ArrowSchema *schema;
    struct ArrowDeviceArray *array;
    (void)module;
    if (!PyArg_ParseTuple(args, "Op:export_arrow_parts", &parts, &device)) {
        return NULL;
    }
    PyObject *first = memrt__arrow_capsule_new_schema(&schema);
    PyObject *second = first != NULL
                           ? memrt__arrow_capsule_new_array(
                                 device ? MEMRT_ARROW_DEVICE_ARRAY : MEMRT_ARROW_ARRAY, &array)
                           : NULL;
    if (second == NULL || memrt__arrow_build_schema(parts, schema) < 0 ||
        memrt__arrow_build_array(parts, &array->array) < 0) {
        Py_XDECREF(first);
        Py_XDECREF(second);
        return NULL;
    }
    array->device_type = ARROW_DEVICE_CPU;
    array->device_id = -1; /* the CPU has no device number */
    return Py_BuildValue("(NN)", first, second);
}

/* --- Streams. --- */

/// Private data of a stream: arrays before `next` were given to the consumer.
typedef struct chunks {
    struct ArrowSchema schema;
    Py_ssize_t next, count;
    struct ArrowArray arrays[];
} chunks_t;

static int give_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    const chunks_t *chunks = stream->private_data;
    return memrt__arrow_copy_schema(&chunks->schema, out) < 0 ? ENOMEM : 0;
}

/// Move the next array to the consumer, or mark the end of the stream, also at every later call.
static int give_next_array(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    chunks_t *chunks = stream->private_data;
    if (chunks->next == chunks->count) {
        out->release = NULL;
        return 0;
    }
    *out = chunks->arrays[chunks->next++];
    return 0;
}

static const char *get_stream_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return NULL; /* the only error is ENOMEM */
}

static void release_chunks(chunks_t *chunks)
{
    while (chunks->next < chunks->count) {
        struct ArrowArray *array = &chunks->arrays[chunks->next++];
        if (array->release != NULL) { /* NULL: the export of the array failed */
            array->release(array);
        }
    }
    if (chunks->schema.release != NULL) {
        chunks->schema.release(&chunks->schema);
    }
    free(chunks);
}

static void release_stream(struct ArrowArrayStream *stream)
{
    chunks_t *chunks = stream->private_data;
    stream->release = NULL;
    release_chunks(chunks);
}

/// Return new chunks with all arrays of a tuple. NULL with an exception.
static chunks_t *build_chunks(PyObject *tuple)
{
    Py_ssize_t count = PyTuple_GET_SIZE(tuple);
    chunks_t *chunks = calloc(1, sizeof(*chunks) + (size_t)count * sizeof(struct ArrowArray));
    if (chunks == NULL) {
        return (chunks_t *)PyErr_NoMemory();
    }
    chunks->count = count;
    int result = memrt__arrow_build_schema(PyTuple_GET_ITEM(tuple, 0), &chunks->schema);
    for (Py_ssize_t i = 0; result == 0 && i < count; i++) {
        result = memrt__arrow_build_array(PyTuple_GET_ITEM(tuple, i), &chunks->arrays[i]);
    }
    if (result < 0) {
        release_chunks(chunks);
        return NULL;
    }
    return chunks;
}

static PyObject *export_stream(PyObject *module, PyObject *tuple)
{
    struct ArrowArrayStream *stream;
    (void)module;
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) == 0) {
        PyErr_Format(PyExc_TypeError, "chunks must be a tuple of at least one array, got %R",
                     tuple);
        return NULL;
    }
    PyObject *capsule = memrt__arrow_capsule_new_stream(&stream);
    chunks_t *chunks = capsule != NULL ? build_chunks(tuple) : NULL;
    if (chunks == NULL) {
        Py_XDECREF(capsule);
        return NULL;
    }
    *stream = (struct ArrowArrayStream){.get_schema = give_schema,
                                        .get_next = give_next_array,
                                        .get_last_error = get_stream_error,
                                        .release = release_stream,
                                        .private_data = chunks};
    return capsule;
}

PyMethodDef memrt__arrow_export_methods[] = {
    {"export_arrow", export_arrow, METH_VARARGS,
     "export_arrow(view, device) -> tuple\n\n"
     "Create capsules with the schema and the array of elements over a MemInfo.\n"
     "view: a tuple of mi, offset, format, length, bool8, name, bitmap, nulls.\n"
     "bitmap: a MemInfo with the validity bitmap of the `nulls` null elements, or None.\n"
     "device: true for a device array, with the type and number of the device.\n"
     "Raises BufferError when the elements cannot be exported, TypeError, MemoryError."},
    {"export_arrow_parts", export_parts, METH_VARARGS,
     "export_arrow_parts(parts, device) -> tuple\n\n"
     "Create capsules with the schema and the array of parts, as take_arrow_parts() describes\n"
     "parts; but each buffer is None, or a pair of a MemInfo and the bytes before the buffer. The\n"
     "caller guarantees that the parts fit together. device: true for a device array.\n"
     "Raises BufferError for device memory, TypeError, MemoryError."},
    {"export_arrow_stream", export_stream, METH_O,
     "export_arrow_stream(chunks) -> PyCapsule\n\n"
     "Create a capsule with a stream of arrays. chunks: a tuple of parts of the same type, as\n"
     "export_arrow_parts() takes. The stream holds all arrays until a consumer takes the arrays.\n"
     "Raises BufferError for device memory, TypeError, MemoryError."},
    {NULL, NULL, 0, NULL},
};
