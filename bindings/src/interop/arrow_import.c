#include "interop/arrow_import.h"

#include <string.h>

#include "core/current_policy.h"
#include "core/mem_handler.h"
#include "core/meminfo_object.h"
#include "core/owner.h"
#include "interop/arrow_capsule.h"
#include "support/errors.h"
#include "support/free_threading.h"

/// Held while a struct of a capsule moves, so that one of several threads gets the struct.
static memrt_mutex_t mutex = MEMRT_MUTEX_INIT;

static int is_host_readable(ArrowDeviceType type)
{
    return type == ARROW_DEVICE_CPU || type == ARROW_DEVICE_CUDA_HOST ||
           type == ARROW_DEVICE_ROCM_HOST || type == ARROW_DEVICE_CUDA_MANAGED;
}

/// Return the array in a capsule of either kind. NULL with an exception.
static struct ArrowArray *open_array(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, MEMRT_ARROW_DEVICE_ARRAY)) {
        return memrt__arrow_capsule_open(capsule, MEMRT_ARROW_ARRAY);
    }
    struct ArrowDeviceArray *array = PyCapsule_GetPointer(capsule, MEMRT_ARROW_DEVICE_ARRAY);
    if (!is_host_readable(array->device_type)) {
        PyErr_Format(PyExc_BufferError,
                     "array must be in memory that the host can read, got device type %d",
                     (int)array->device_type);
        return NULL;
    }
    if (array->sync_event != NULL) {
        PyErr_SetString(PyExc_BufferError, "array must not have a sync event, because memrt cannot "
                                           "wait for the event: synchronize the device first");
        return NULL;
    }
    return &array->array;
}

/// Release an imported array. This is the give_back callback of its owner.
static void release_imported_array(void *loan)
{
    struct ArrowArray *array = loan;
    array->release(array);
    PyMem_Free(array);
}

/// Adopt an array and move the struct to `moved`. On failure returns NULL with an exception, and
/// nothing has changed.
static memrt_meminfo_t *adopt_array(const struct ArrowSchema *schema, struct ArrowArray *array,
                                    struct ArrowArray *moved, memrt_policy_t *policy,
                                    memrt_arrow_view_t *view)
{
    memrt_meminfo_t *mi;
    const char *why = NULL;
    memrt_owner_t *owner = memrt__owner_of_loan(release_imported_array, moved, NULL);
    if (owner == NULL) {
        return NULL;
    }
    memrt_new_options_t options = memrt__owner_options(owner, policy);
    *view = (memrt_arrow_view_t){.struct_size = sizeof(*view)};
    MEMRT_MUTEX_LOCK(&mutex);
    memrt_status_t status = memrt__api()->arrow_adopt(schema, array, &options, view, &mi, &why);
    if (status == MEMRT_OK) {
        *moved = *array;
        array->release = NULL;
    }
    MEMRT_MUTEX_UNLOCK(&mutex);
    if (status != MEMRT_OK) {
        memrt__owner_discard(owner);
        memrt__raise_refusal(status, "cannot take the memory of an Arrow array", why);
        return NULL;
    }
    return mi;
}

/// Move an array into a new MemInfo object. On failure returns NULL with an exception, and `array`
/// is unchanged.
static PyObject *move_array(const struct ArrowSchema *schema, struct ArrowArray *array,
                            memrt_policy_t *policy, memrt_arrow_view_t *view)
{
    struct ArrowArray *moved = PyMem_Malloc(sizeof(*moved));
    if (moved == NULL) {
        return PyErr_NoMemory();
    }
    memrt_meminfo_object_t *shell = memrt__meminfo_shell();
    memrt_meminfo_t *mi = shell != NULL ? adopt_array(schema, array, moved, policy, view) : NULL;
    if (mi == NULL) {
        Py_XDECREF(shell);
        PyMem_Free(moved);
        return NULL;
    }
    return memrt__meminfo_fill(shell, mi);
}

/// Return a copy of the bytes of the validity bitmap, or None.
static PyObject *copy_bitmap(const memrt_arrow_view_t *view)
{
    if (view->validity == NULL) {
        Py_RETURN_NONE;
    }
    return PyBytes_FromStringAndSize((const char *)view->validity,
                                     (Py_ssize_t)((view->first_bit + view->length + 7) / 8));
}

static PyObject *import_opened_array(const struct ArrowSchema *schema, struct ArrowArray *array,
                                     memrt_policy_t *policy)
{
    memrt_arrow_view_t view;
    memrt__owner_drain();
    PyObject *base = move_array(schema, array, policy, &view);
    PyObject *bitmap = base != NULL ? copy_bitmap(&view) : NULL;
    if (bitmap == NULL) {
        Py_XDECREF(base);
        return NULL;
    }
    return Py_BuildValue("(NsLNLLN)", base, view.format, (long long)view.length,
                         PyBool_FromLong((view.flags & MEMRT_ARROW_BOOL8) != 0),
                         (long long)view.null_count, (long long)view.first_bit, bitmap);
}

static PyObject *import_arrow(PyObject *module, PyObject *args)
{
    PyObject *capsules[2], *policy;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOO:take_arrow", &capsules[0], &capsules[1], &policy)) {
        return NULL;
    }
    struct ArrowSchema *schema = memrt__arrow_capsule_open(capsules[0], MEMRT_ARROW_SCHEMA);
    struct ArrowArray *array = schema != NULL ? open_array(capsules[1]) : NULL;
    PyObject *handler = array != NULL ? memrt__current_handler_for(policy) : NULL;
    if (handler == NULL) {
        return NULL;
    }
    PyObject *imported = import_opened_array(schema, array, memrt__handler_policy(handler));
    Py_DECREF(handler);
    return imported;
}

/* --- Streams: libraries that keep elements in chunks export a stream of arrays. --- */

#define STREAM "arrow_array_stream"

static void *raise_stream_error(struct ArrowArrayStream *stream, int error)
{
    const char *text = stream->get_last_error(stream);
    PyErr_Format(PyExc_BufferError, "the stream of Arrow arrays failed with error %d: %s", error,
                 text != NULL ? text : strerror(error));
    return NULL;
}

/// Release the empty array of fill_empty_array, which owns nothing.
static void release_empty_array(struct ArrowArray *array)
{
    array->release = NULL;
}

/// Fill in an empty array, for a stream without arrays.
static void fill_empty_array(struct ArrowArray *array)
{
    static const void *buffers[2];
    *array =
        (struct ArrowArray){.n_buffers = 2, .buffers = buffers, .release = release_empty_array};
}

/// Check that the stream has no further array. -1 with an exception.
static int check_stream_end(struct ArrowArrayStream *stream)
{
    struct ArrowArray next = {.release = NULL};
    int error = stream->get_next(stream, &next);
    if (error != 0) {
        raise_stream_error(stream, error);
        return -1;
    }
    if (next.release != NULL) {
        next.release(&next);
        PyErr_SetString(PyExc_BufferError, "the elements are in several chunks, and a NumPy array "
                                           "cannot span chunks: combine the chunks first");
        return -1;
    }
    return 0;
}

/// Read the schema and the only array from the stream. -1 with an exception.
static int read_stream(struct ArrowArrayStream *stream, struct ArrowSchema *schema,
                       struct ArrowArray *array)
{
    int error = stream->get_schema(stream, schema);
    if (error == 0) {
        error = stream->get_next(stream, array);
    }
    if (error != 0) {
        raise_stream_error(stream, error);
        return -1;
    }
    if (array->release == NULL) {
        fill_empty_array(array);
        return 0;
    }
    return check_stream_end(stream);
}

static PyObject *read_stream_capsules(struct ArrowArrayStream *stream)
{
    struct ArrowSchema *schema;
    struct ArrowDeviceArray *array;
    PyObject *first = memrt__arrow_capsule_new_schema(&schema);
    PyObject *second =
        first != NULL ? memrt__arrow_capsule_new_array(MEMRT_ARROW_ARRAY, &array) : NULL;
    if (second == NULL || read_stream(stream, schema, &array->array) < 0) {
        Py_XDECREF(first);
        Py_XDECREF(second);
        return NULL;
    }
    return Py_BuildValue("(NN)", first, second);
}

/// Move a stream out of its capsule, whose stream then counts as released.
static struct ArrowArrayStream move_stream(struct ArrowArrayStream *source)
{
    MEMRT_MUTEX_LOCK(&mutex);
    struct ArrowArrayStream stream = *source;
    source->release = NULL;
    MEMRT_MUTEX_UNLOCK(&mutex);
    return stream;
}

static PyObject *open_stream_array(PyObject *module, PyObject *capsule)
{
    (void)module;
    struct ArrowArrayStream *source = memrt__arrow_capsule_open(capsule, STREAM);
    if (source == NULL) {
        return NULL;
    }
    struct ArrowArrayStream stream = move_stream(source);
    if (stream.release == NULL) {
        PyErr_SetString(PyExc_BufferError, "the stream of Arrow arrays was released");
        return NULL;
    }
    PyObject *capsules = read_stream_capsules(&stream);
    memrt_pending_t pending;
    memrt__pending_save(&pending);
    stream.release(&stream);
    memrt__pending_restore(&pending);
    return capsules;
}

PyMethodDef memrt__arrow_import_methods[] = {
    {"array_of_stream", open_stream_array, METH_O,
     "array_of_stream(stream) -> tuple\n\n"
     "Return capsules with the schema and the only array of a stream, and release the stream.\n"
     "Raises BufferError for several arrays and for a stream that fails, ValueError for another\n"
     "capsule, TypeError for an object that is not a capsule, MemoryError."},
    {"take_arrow", import_arrow, METH_VARARGS,
     "take_arrow(schema, array, policy) -> tuple\n\n"
     "Take the memory of an array out of a capsule. Return the MemInfo, the format, the length,\n"
     "whether elements are truth values of one byte, the number of nulls, the bit of the first\n"
     "element, and the bytes of the validity bitmap or None. policy: as in memrt.empty().\n"
     "Raises BufferError when memrt cannot use the array, ValueError for another capsule,\n"
     "TypeError for an object that is not a capsule. After an error the capsules are unchanged."},
    {NULL, NULL, 0, NULL},
};
