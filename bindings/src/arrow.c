#include "arrow.h"

#include <string.h>

#include "argument.h"
#include "errors.h"
#include "handler.h"
#include "owner.h"
#include "placement.h"

#define SCHEMA "arrow_schema"
#define ARRAY "arrow_array"
#define DEVICE_ARRAY "arrow_device_array"

/* --- Handing out. --- */

/// What others release may be theirs, and must not lose an exception that is pending.
static void end_schema(PyObject *capsule)
{
    memrt_pending_t pending;
    memrt__pending_save(&pending);
    struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, SCHEMA);
    if (schema->release != NULL) {
        schema->release(schema);
    }
    PyMem_Free(schema);
    memrt__pending_restore(&pending);
}

/// Of either kind: an array that is on a device begins with the array.
static void end_array(PyObject *capsule)
{
    memrt_pending_t pending;
    memrt__pending_save(&pending);
    struct ArrowArray *array = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
    if (array->release != NULL) {
        array->release(array);
    }
    PyMem_Free(array);
    memrt__pending_restore(&pending);
}

/// A capsule with zeroed room, which is as if released.
static PyObject *new_capsule(const char *name, size_t size, PyCapsule_Destructor destructor,
                             void *out)
{
    void *room = PyMem_Calloc(1, size);
    if (room == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *capsule = PyCapsule_New(room, name, destructor);
    if (capsule == NULL) {
        PyMem_Free(room);
    }
    *(void **)out = room;
    return capsule;
}

/// Fill capsules, of which `array` may be NULL. -1 with an exception.
static int fill(memrt_meminfo_t *mi, const memrt_arrow_view_t *view, struct ArrowSchema *schema,
                struct ArrowArray *array)
{
    const char *why = NULL;
    memrt_status_t status = memrt__api()->arrow_export(mi, view, schema, array, &why);
    if (status != MEMRT_OK) {
        memrt__raise_refusal(status, "cannot export memory as an Arrow array", why);
        return -1;
    }
    return 0;
}

/// Say where the memory is, as only a device array can. All work on it is done then, so that there
/// is no event to wait for. -1 with an exception.
static int place(const memrt_meminfo_t *mi, memrt_arrow_view_t *view, struct ArrowDeviceArray *out)
{
    static const ArrowDeviceType types[] = {
        [MEMRT_MEMORY_DEVICE] = ARROW_DEVICE_CUDA,
        [MEMRT_MEMORY_MANAGED] = ARROW_DEVICE_CUDA_MANAGED,
        [MEMRT_MEMORY_PINNED] = ARROW_DEVICE_CUDA_HOST,
    };
    memrt_cuda_info_t info;
    out->device_type = ARROW_DEVICE_CPU;
    out->device_id = -1; /* the CPU has no number */
    if (!memrt__placement(mi, &info)) {
        return 0;
    }
    view->flags |= MEMRT_ARROW_DEVICE;
    out->device_type = types[info.memory];
    out->device_id = info.device;
    return memrt__placement_settle(&info);
}

/// What `__arrow_c_array__` returns, with `device` `__arrow_c_device_array__`. NULL with an
/// exception.
static PyObject *produce(memrt_meminfo_t *mi, memrt_arrow_view_t *view, int device)
{
    struct ArrowSchema *schema;
    struct ArrowDeviceArray *array;
    PyObject *capsules[2] = {new_capsule(SCHEMA, sizeof(*schema), end_schema, &schema), NULL};
    if (capsules[0] != NULL) {
        capsules[1] = new_capsule(device ? DEVICE_ARRAY : ARRAY, sizeof(*array), end_array, &array);
    }
    if (capsules[1] == NULL ||
        (device ? place(mi, view, array) : memrt__placement_for_host(mi)) < 0 ||
        fill(mi, view, schema, &array->array) < 0) {
        Py_XDECREF(capsules[0]);
        Py_XDECREF(capsules[1]);
        return NULL;
    }
    return Py_BuildValue("(NN)", capsules[0], capsules[1]);
}

static memrt_arrow_view_t bytes_of(const memrt_meminfo_t *mi)
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
    PyObject *capsule =
        mi != NULL ? new_capsule(SCHEMA, sizeof(*schema), end_schema, &schema) : NULL;
    if (capsule == NULL) {
        return NULL;
    }
    memrt_arrow_view_t view = bytes_of(mi);
    if (fill(mi, &view, schema, NULL) < 0) {
        Py_CLEAR(capsule);
    }
    return capsule;
}

/// Whatever schema was requested: that is a wish, says Arrow's PyCapsule interface.
static PyObject *produce_bytes(memrt_meminfo_object_t *self, int device)
{
    memrt_meminfo_t *mi = memrt__meminfo_get(self);
    if (mi == NULL) {
        return NULL;
    }
    memrt_arrow_view_t view = bytes_of(mi);
    return produce(mi, &view, device);
}

PyObject *memrt__arrow_array_of(memrt_meminfo_object_t *self, PyObject *const *args,
                                Py_ssize_t count, PyObject *names)
{
    static const char *const keywords[] = {"requested_schema"};
    static memrt_signature_t signature = {
        .function = "__arrow_c_array__", .keywords = keywords, .total = 1, .positional = 1};
    PyObject *requested;
    return memrt__arguments(&signature, args, count, names, &requested) == 0
               ? produce_bytes(self, 0)
               : NULL;
}

/// Any keyword is taken whose value is None: there may be more of them one day.
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
                         "__arrow_c_device_array__() does not know the keyword %R", name);
            return -1;
        }
    }
    return 0;
}

PyObject *memrt__arrow_device_array_of(memrt_meminfo_object_t *self, PyObject *const *args,
                                       Py_ssize_t count, PyObject *names)
{
    return check_device_arguments(args, count, names) == 0 ? produce_bytes(self, 1) : NULL;
}

/// Say which nulls there are, by a bitmap in a MemInfo or None. -1 with an exception.
static int read_bitmap(PyObject *bitmap, memrt_arrow_view_t *out)
{
    if (bitmap == Py_None) {
        return 0;
    }
    if (!memrt__meminfo_check(bitmap)) {
        PyErr_Format(PyExc_TypeError, "a bitmap is a memrt.MemInfo or None, got %.200s",
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
    return mi != NULL ? produce(mi, &view, device) : NULL;
}

/* --- Taking. --- */

static void *open_capsule(PyObject *capsule, const char *name)
{
    if (!PyCapsule_IsValid(capsule, name)) {
        PyErr_Format(PyCapsule_CheckExact(capsule) ? PyExc_ValueError : PyExc_TypeError,
                     "expected a capsule \"%s\", got %R", name, capsule);
        return NULL;
    }
    return PyCapsule_GetPointer(capsule, name);
}

static int is_read_by_the_host(ArrowDeviceType type)
{
    return type == ARROW_DEVICE_CPU || type == ARROW_DEVICE_CUDA_HOST ||
           type == ARROW_DEVICE_ROCM_HOST || type == ARROW_DEVICE_CUDA_MANAGED;
}

/// The array in a capsule of either kind. NULL with an exception.
static struct ArrowArray *open_array(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, DEVICE_ARRAY)) {
        return open_capsule(capsule, ARRAY);
    }
    struct ArrowDeviceArray *array = PyCapsule_GetPointer(capsule, DEVICE_ARRAY);
    if (!is_read_by_the_host(array->device_type)) {
        PyErr_Format(PyExc_BufferError,
                     "the array is on a device of type %d, where the host cannot read it",
                     (int)array->device_type);
        return NULL;
    }
    if (array->sync_event != NULL) {
        PyErr_SetString(PyExc_BufferError,
                        "the array is not ready before an event of its device, for which memrt "
                        "cannot wait: synchronize first");
        return NULL;
    }
    return &array->array;
}

static void end_taken(void *loan)
{
    struct ArrowArray *array = loan;
    array->release(array);
    PyMem_Free(array);
}

/// Adopt an array that has moved to `moved` then. NULL with an exception, and nothing changed.
static memrt_meminfo_t *adopt(const struct ArrowSchema *schema, struct ArrowArray *array,
                              struct ArrowArray *moved, memrt_policy_t *policy,
                              memrt_arrow_view_t *view)
{
    memrt_meminfo_t *mi;
    const char *why = NULL;
    memrt_owner_t *owner = memrt__owner_of_loan(end_taken, moved);
    if (owner == NULL) {
        return NULL;
    }
    memrt_new_options_t options = memrt__owner_options(owner, policy);
    *view = (memrt_arrow_view_t){.struct_size = sizeof(*view)};
    memrt_status_t status = memrt__api()->arrow_adopt(schema, array, &options, view, &mi, &why);
    if (status != MEMRT_OK) {
        memrt__owner_discard(owner);
        memrt__raise_refusal(status, "cannot take the memory of an Arrow array", why);
        return NULL;
    }
    *moved = *array;
    array->release = NULL;
    return mi;
}

/// Move an array into a MemInfo object. NULL with an exception; then it is where it was.
static PyObject *move(const struct ArrowSchema *schema, struct ArrowArray *array,
                      memrt_policy_t *policy, memrt_arrow_view_t *view)
{
    struct ArrowArray *moved = PyMem_Malloc(sizeof(*moved));
    if (moved == NULL) {
        return PyErr_NoMemory();
    }
    memrt_meminfo_object_t *shell = memrt__meminfo_shell();
    memrt_meminfo_t *mi = shell != NULL ? adopt(schema, array, moved, policy, view) : NULL;
    if (mi == NULL) {
        Py_XDECREF(shell);
        PyMem_Free(moved);
        return NULL;
    }
    return memrt__meminfo_fill(shell, mi);
}

/// A copy of the bytes of the validity bitmap, or None.
static PyObject *bitmap_of(const memrt_arrow_view_t *view)
{
    if (view->validity == NULL) {
        Py_RETURN_NONE;
    }
    return PyBytes_FromStringAndSize((const char *)view->validity,
                                     (Py_ssize_t)((view->first_bit + view->length + 7) / 8));
}

static PyObject *take_opened(const struct ArrowSchema *schema, struct ArrowArray *array,
                             memrt_policy_t *policy)
{
    memrt_arrow_view_t view;
    memrt__owner_drain();
    PyObject *base = move(schema, array, policy, &view);
    PyObject *bitmap = base != NULL ? bitmap_of(&view) : NULL;
    if (bitmap == NULL) {
        Py_XDECREF(base);
        return NULL;
    }
    return Py_BuildValue("(NsLNLLN)", base, view.format, (long long)view.length,
                         PyBool_FromLong((view.flags & MEMRT_ARROW_BOOL8) != 0),
                         (long long)view.null_count, (long long)view.first_bit, bitmap);
}

static PyObject *take_arrow(PyObject *module, PyObject *args)
{
    PyObject *capsules[2], *policy;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOO:take_arrow", &capsules[0], &capsules[1], &policy)) {
        return NULL;
    }
    struct ArrowSchema *schema = open_capsule(capsules[0], SCHEMA);
    struct ArrowArray *array = schema != NULL ? open_array(capsules[1]) : NULL;
    PyObject *handler = array != NULL ? memrt__handler_for(policy) : NULL;
    if (handler == NULL) {
        return NULL;
    }
    PyObject *taken = take_opened(schema, array, memrt__handler_policy(handler));
    Py_DECREF(handler);
    return taken;
}

/* --- Streams, of what others have in chunks. --- */

#define STREAM "arrow_array_stream"

static void *refuse_stream(struct ArrowArrayStream *stream, int error)
{
    const char *text = stream->get_last_error(stream);
    PyErr_Format(PyExc_BufferError, "the stream of Arrow arrays ended in error %d: %s", error,
                 text != NULL ? text : strerror(error));
    return NULL;
}

/// The elements of no array at all.
static void end_nothing(struct ArrowArray *array)
{
    array->release = NULL;
}

static void fill_with_nothing(struct ArrowArray *array)
{
    static const void *buffers[2];
    *array = (struct ArrowArray){.n_buffers = 2, .buffers = buffers, .release = end_nothing};
}

/// That nothing follows. -1 with an exception.
static int expect_end(struct ArrowArrayStream *stream)
{
    struct ArrowArray next = {.release = NULL};
    int error = stream->get_next(stream, &next);
    if (error != 0) {
        refuse_stream(stream, error);
        return -1;
    }
    if (next.release != NULL) {
        next.release(&next);
        PyErr_SetString(PyExc_BufferError,
                        "the elements are in several chunks, over which no array of NumPy's can "
                        "lie: combine them first");
        return -1;
    }
    return 0;
}

/// Fill both from the stream. -1 with an exception.
static int read_stream(struct ArrowArrayStream *stream, struct ArrowSchema *schema,
                       struct ArrowArray *array)
{
    int error = stream->get_schema(stream, schema);
    if (error == 0) {
        error = stream->get_next(stream, array);
    }
    if (error != 0) {
        refuse_stream(stream, error);
        return -1;
    }
    if (array->release == NULL) {
        fill_with_nothing(array);
        return 0;
    }
    return expect_end(stream);
}

static PyObject *capsules_of(struct ArrowArrayStream *stream)
{
    struct ArrowSchema *schema;
    struct ArrowArray *array;
    PyObject *first = new_capsule(SCHEMA, sizeof(*schema), end_schema, &schema);
    PyObject *second = first != NULL ? new_capsule(ARRAY, sizeof(*array), end_array, &array) : NULL;
    if (second == NULL || read_stream(stream, schema, array) < 0) {
        Py_XDECREF(first);
        Py_XDECREF(second);
        return NULL;
    }
    return Py_BuildValue("(NN)", first, second);
}

static PyObject *array_of_stream(PyObject *module, PyObject *capsule)
{
    (void)module;
    struct ArrowArrayStream *stream = open_capsule(capsule, STREAM);
    if (stream == NULL) {
        return NULL;
    }
    if (stream->release == NULL) {
        PyErr_SetString(PyExc_BufferError, "the stream of Arrow arrays was released");
        return NULL;
    }
    PyObject *capsules = capsules_of(stream);
    memrt_pending_t pending;
    memrt__pending_save(&pending);
    stream->release(stream);
    memrt__pending_restore(&pending);
    return capsules;
}

PyMethodDef memrt__arrow_methods[] = {
    {"export_arrow", export_arrow, METH_VARARGS,
     "export_arrow(view, device) -> tuple\n\n"
     "Capsules with the schema and the array of elements over a MemInfo, from `offset` bytes on.\n"
     "view: a tuple of mi, offset, format, length, bool8, name, bitmap, nulls.\n"
     "bitmap: a MemInfo that says which of the `nulls` are null, or None.\n"
     "device: whether the capsule of the array says that it is on the CPU.\n"
     "Raises BufferError for what cannot be, TypeError, MemoryError."},
    {"array_of_stream", array_of_stream, METH_O,
     "array_of_stream(stream) -> tuple\n\n"
     "Capsules with the schema and the only array of a stream in a capsule, which is used up.\n"
     "Raises BufferError for several arrays and a stream that fails, ValueError for another\n"
     "capsule, TypeError for what is none, MemoryError."},
    {"take_arrow", take_arrow, METH_VARARGS,
     "take_arrow(schema, array, policy) -> tuple\n\n"
     "Take the memory of an array in a capsule, which is used up: the MemInfo, the format, "
     "length,\n"
     "whether elements are truth values of a byte, the number of nulls, the bit of the first\n"
     "element, and the bytes of the validity bitmap or None. policy: as in memrt.empty().\n"
     "Raises BufferError when memrt cannot use the array, ValueError for another capsule,\n"
     "TypeError for what is none; then the capsules are as they were."},
    {NULL, NULL, 0, NULL},
};
