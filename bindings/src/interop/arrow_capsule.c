#include "interop/arrow_capsule.h"

#include "support/errors.h"

memrt_mutex_t memrt__arrow_mutex = MEMRT_MUTEX_INIT;

/// Destroy a schema capsule. The release callback may belong to another library, and must not lose
/// a pending exception.
static void destroy_schema_capsule(PyObject *capsule)
{
    memrt_pending_t pending;
    memrt__pending_save(&pending);
    struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, MEMRT_ARROW_SCHEMA);
    if (schema->release != NULL) {
        schema->release(schema);
    }
    PyMem_Free(schema);
    memrt__pending_restore(&pending);
}

/// Destroy an array capsule of either kind. A device array begins with the plain array.
static void destroy_array_capsule(PyObject *capsule)
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

/// Destroy a stream capsule.
static void destroy_stream_capsule(PyObject *capsule)
{
    memrt_pending_t pending;
    memrt__pending_save(&pending);
    struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, MEMRT_ARROW_STREAM);
    if (stream->release != NULL) {
        stream->release(stream);
    }
    PyMem_Free(stream);
    memrt__pending_restore(&pending);
}

/// Create a capsule over a zeroed struct, which counts as released. `out` gets the struct.
static PyObject *create_capsule(const char *name, size_t size, PyCapsule_Destructor destructor,
                                void *out)
{
    void *storage = PyMem_Calloc(1, size);
    if (storage == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *capsule = PyCapsule_New(storage, name, destructor);
    if (capsule == NULL) {
        PyMem_Free(storage);
    }
    *(void **)out = storage;
    return capsule;
}

PyObject *memrt__arrow_capsule_new_schema(struct ArrowSchema **out)
{
    return create_capsule(MEMRT_ARROW_SCHEMA, sizeof(**out), destroy_schema_capsule, out);
}

PyObject *memrt__arrow_capsule_new_array(const char *name, struct ArrowDeviceArray **out)
{
    return create_capsule(name, sizeof(**out), destroy_array_capsule, out);
}

PyObject *memrt__arrow_capsule_new_stream(struct ArrowArrayStream **out)
{
    return create_capsule(MEMRT_ARROW_STREAM, sizeof(**out), destroy_stream_capsule, out);
}

void *memrt__arrow_capsule_open(PyObject *capsule, const char *name)
{
    if (!PyCapsule_IsValid(capsule, name)) {
        PyErr_Format(PyCapsule_CheckExact(capsule) ? PyExc_ValueError : PyExc_TypeError,
                     "expected a capsule \"%s\", got %R", name, capsule);
        return NULL;
    }
    return PyCapsule_GetPointer(capsule, name);
}
