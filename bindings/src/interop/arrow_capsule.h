#ifndef MEMRT_BINDINGS_INTEROP_ARROW_CAPSULE_H
#define MEMRT_BINDINGS_INTEROP_ARROW_CAPSULE_H

#include "support/binding.h"
#include "support/free_threading.h"

#include <memrt/arrow.h>

/// Capsules of Arrow's PyCapsule interface. A capsule owns its Arrow struct, and releases a struct
/// that no consumer has taken.

/// Capsule names.
#define MEMRT_ARROW_SCHEMA "arrow_schema"
#define MEMRT_ARROW_ARRAY "arrow_array"
#define MEMRT_ARROW_DEVICE_ARRAY "arrow_device_array"
#define MEMRT_ARROW_STREAM "arrow_array_stream"

/// Create a capsule over a zeroed schema, which counts as released. `out` gets the schema. NULL
/// with MemoryError.
PyObject *memrt__arrow_capsule_new_schema(struct ArrowSchema **out);

/// Create a capsule over a zeroed array, which counts as released. `name`: MEMRT_ARROW_ARRAY, whose
/// consumers see the plain array at the start of the struct, or MEMRT_ARROW_DEVICE_ARRAY. `out`
/// gets the struct. NULL with MemoryError.
PyObject *memrt__arrow_capsule_new_array(const char *name, struct ArrowDeviceArray **out);

/// Create a capsule over a zeroed stream, which counts as released. `out` gets the stream. NULL
/// with MemoryError.
PyObject *memrt__arrow_capsule_new_stream(struct ArrowArrayStream **out);

/// Return the struct of a capsule. NULL with ValueError for a capsule of another name, or with
/// TypeError for an object that is not a capsule.
void *memrt__arrow_capsule_open(PyObject *capsule, const char *name);

/// Held while a struct of a capsule moves: only one thread gets the struct.
extern MEMRT_HIDDEN memrt_mutex_t memrt__arrow_mutex;

#endif
