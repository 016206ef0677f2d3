#include "interop/arrow_import.h"

#include <errno.h>
#include <string.h>

#include "core/current_policy.h"
#include "core/mem_handler.h"
#include "core/meminfo_object.h"
#include "core/owner.h"
#include "interop/arrow_capsule.h"
#include "interop/arrow_import_parts.h"
#include "support/errors.h"

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

/// Adopt an array and move the struct to `moved`. On failure returns NULL, and nothing has changed.
/// Failure: an exception, or none if the elements are not in one buffer of whole bytes each.
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
    MEMRT_MUTEX_LOCK(&memrt__arrow_mutex);
    memrt_status_t status = memrt__api()->arrow_adopt(schema, array, &options, view, &mi, &why);
    if (status == MEMRT_OK) {
        *moved = *array;
        array->release = NULL;
    }
    MEMRT_MUTEX_UNLOCK(&memrt__arrow_mutex);
    if (status != MEMRT_OK) {
        memrt__owner_discard(owner);
        if (status != MEMRT_ENOTSUP) {
            memrt__raise_refusal(status, "cannot take the memory of an Arrow array", why);
        }
        return NULL;
    }
    return mi;
}

/// Move an array into a new MemInfo object. Failure: as of adopt_array.
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
    if (base == NULL) {
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    }
    PyObject *bitmap = copy_bitmap(&view);
    if (bitmap == NULL) {
        Py_DECREF(base);
        return NULL;
    }
    return Py_BuildValue("(NsLNLLN)", base, view.format, (long long)view.length,
                         PyBool_FromLong((view.flags & MEMRT_ARROW_BOOL8) != 0),
                         (long long)view.null_count, (long long)view.first_bit, bitmap);
}

/// Return whether NumPy describes elements of the format only with a copy or as several numbers:
/// decimals, dates and times of 32 bits, intervals.
static int needs_parts(const char *format)
{
    return format != NULL &&
           (format[0] == 'd' || strcmp(format, "tdD") == 0 || strcmp(format, "tts") == 0 ||
            strcmp(format, "ttm") == 0 || strncmp(format, "ti", 2) == 0);
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
    if (array != NULL && schema->release != NULL && needs_parts(schema->format)) {
        Py_RETURN_NONE;
    }
    PyObject *handler = array != NULL ? memrt__current_handler_for(policy) : NULL;
    if (handler == NULL) {
        return NULL;
    }
    PyObject *imported = import_opened_array(schema, array, memrt__handler_policy(handler));
    Py_DECREF(handler);
    return imported;
}

static PyObject *import_arrow_parts(PyObject *module, PyObject *args)
{
    PyObject *capsules[2], *policy;
    struct ArrowArray *array = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOO:take_arrow_parts", &capsules[0], &capsules[1], &policy)) {
        return NULL;
    }
    struct ArrowSchema *schema = memrt__arrow_capsule_open(capsules[0], MEMRT_ARROW_SCHEMA);
    if (schema == NULL || (capsules[1] != Py_None && (array = open_array(capsules[1])) == NULL)) {
        return NULL;
    }
    PyObject *handler = memrt__current_handler_for(policy);
    if (handler == NULL) {
        return NULL;
    }
    memrt__owner_drain();
    PyObject *parts = memrt__arrow_take_parts(schema, array, memrt__handler_policy(handler));
    Py_DECREF(handler);
    return parts;
}

/* --- Streams: libraries that keep elements in chunks export a stream of arrays. --- */

static void *raise_stream_error(struct ArrowArrayStream *stream, int error)
{
    const char *text = stream->get_last_error(stream);
    PyErr_Format(error == ENOMEM ? PyExc_MemoryError : PyExc_BufferError,
                 "the stream of Arrow arrays failed with error %d: %s", error,
                 text != NULL ? text : strerror(error));
    return NULL;
}

/// Read the schema into a new capsule. NULL with an exception.
static PyObject *read_schema(struct ArrowArrayStream *stream)
{
    struct ArrowSchema *schema;
    int error;
    PyObject *capsule = memrt__arrow_capsule_new_schema(&schema);
    if (capsule == NULL) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS; /* the producer may wait for a thread that needs the GIL */
    error = stream->get_schema(stream, schema);
    Py_END_ALLOW_THREADS;
    if (error != 0) {
        schema->release = NULL; /* a stream that fails gives nothing */
        raise_stream_error(stream, error);
        Py_CLEAR(capsule);
    }
    return capsule;
}

/// Append the next array of the stream, in a new capsule, to a list. Returns 1, 0 at the end of
/// the stream, or -1 with an exception.
static int append_next_array(struct ArrowArrayStream *stream, PyObject *arrays)
{
    struct ArrowDeviceArray *array;
    int error, result = -1;
    PyObject *capsule = memrt__arrow_capsule_new_array(MEMRT_ARROW_ARRAY, &array);
    if (capsule == NULL) {
        return -1;
    }
    Py_BEGIN_ALLOW_THREADS; /* as in read_schema */
    error = stream->get_next(stream, &array->array);
    Py_END_ALLOW_THREADS;
    if (error != 0) {
        array->array.release = NULL; /* a stream that fails gives nothing */
        raise_stream_error(stream, error);
    } else if (array->array.release == NULL) {
        result = 0;
    } else if (PyList_Append(arrays, capsule) == 0) {
        result = 1;
    }
    Py_DECREF(capsule); /* the destructor keeps the exception */
    return result;
}

/// Return a tuple of the schema and a list of all arrays.
static PyObject *read_stream(struct ArrowArrayStream *stream)
{
    PyObject *schema = read_schema(stream);
    PyObject *arrays = schema != NULL ? PyList_New(0) : NULL;
    int more = arrays != NULL ? 1 : -1;
    while (more > 0) {
        more = append_next_array(stream, arrays);
    }
    if (more < 0) {
        Py_XDECREF(schema);
        Py_XDECREF(arrays); /* the destructors of the capsules keep the exception */
        return NULL;
    }
    return Py_BuildValue("(NN)", schema, arrays);
}

/// Move a stream out of its capsule, whose stream then counts as released.
static struct ArrowArrayStream move_stream(struct ArrowArrayStream *source)
{
    MEMRT_MUTEX_LOCK(&memrt__arrow_mutex);
    struct ArrowArrayStream stream = *source;
    source->release = NULL;
    MEMRT_MUTEX_UNLOCK(&memrt__arrow_mutex);
    return stream;
}

static PyObject *read_stream_arrays(PyObject *module, PyObject *capsule)
{
    (void)module;
    struct ArrowArrayStream *source = memrt__arrow_capsule_open(capsule, MEMRT_ARROW_STREAM);
    if (source == NULL) {
        return NULL;
    }
    struct ArrowArrayStream stream = move_stream(source);
    if (stream.release == NULL) {
        PyErr_SetString(PyExc_BufferError, "the stream of Arrow arrays was released");
        return NULL;
    }
    PyObject *capsules = read_stream(&stream);
    memrt_pending_t pending;
    memrt__pending_save(&pending);
    stream.release(&stream);
    memrt__pending_restore(&pending);
    return capsules;
}

PyMethodDef memrt__arrow_import_methods[] = {
    {"arrays_of_stream", read_stream_arrays, METH_O,
     "arrays_of_stream(stream) -> tuple\n\n"
     "Return a capsule with the schema of a stream and a list of capsules with all arrays, and\n"
     "release the stream. Raises BufferError for a stream that fails, or MemoryError for ENOMEM,\n"
     "ValueError for another capsule, TypeError for an object that is not a capsule. After an\n"
     "error, the arrays that were read before are released."},
    {"take_arrow", import_arrow, METH_VARARGS,
     "take_arrow(schema, array, policy) -> tuple or None\n\n"
     "Take the memory of an array out of a capsule. Return the MemInfo, the format, the length,\n"
     "whether elements are truth values of one byte, the number of nulls, the bit of the first\n"
     "element, and the bytes of the validity bitmap or None. policy: as in memrt.empty().\n"
     "Return None, with the capsules unchanged, unless NumPy has a dtype for the elements in one\n"
     "buffer: use take_arrow_parts().\n"
     "Raises BufferError when memrt cannot use the array, ValueError for another capsule,\n"
     "TypeError for an object that is not a capsule. After an error the capsules are unchanged."},
    {"take_arrow_parts", import_arrow_parts, METH_VARARGS,
     "take_arrow_parts(schema, array, policy) -> tuple\n\n"
     "Take an array of any type out of a capsule. Return the MemInfo that releases the array, and\n"
     "a tuple of format, name, whether elements are truth values of one byte, flags, length,\n"
     "number of nulls or -1, offset, addresses of the buffers, children, dictionary or None. The\n"
     "children and the dictionary are such tuples. array: None for a description without an\n"
     "array. policy: as in memrt.empty().\n"
     "Raises BufferError for a malformed array, ValueError for another capsule, TypeError for an\n"
     "object that is not a capsule, MemoryError. After an error the array may be released."},
    {NULL, NULL, 0, NULL},
};
