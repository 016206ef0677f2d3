#ifndef MEMRT_BINDINGS_INTEROP_ARROW_EXPORT_H
#define MEMRT_BINDINGS_INTEROP_ARROW_EXPORT_H

#include "core/meminfo_object.h"

/// Export MemInfos as Arrow arrays in capsules, by Arrow's PyCapsule interface.

/// Methods of MemInfo, which exports its bytes as an Arrow array. Arguments arrive as in
/// METH_FASTCALL | METH_KEYWORDS.
PyObject *memrt__arrow_schema_of(memrt_meminfo_object_t *self, PyObject *unused);
PyObject *memrt__arrow_array_of(memrt_meminfo_object_t *self, PyObject *const *args,
                                Py_ssize_t count, PyObject *names);
PyObject *memrt__arrow_device_array_of(memrt_meminfo_object_t *self, PyObject *const *args,
                                       Py_ssize_t count, PyObject *names);

#define MEMRT_ARROW_SCHEMA_DOC                                                                     \
    "__arrow_c_schema__() -> PyCapsule\n\n"                                                        \
    "Return the type of the elements: a capsule \"arrow_schema\"."
#define MEMRT_ARROW_ARRAY_DOC                                                                      \
    "__arrow_c_array__(requested_schema=None) -> (PyCapsule, PyCapsule)\n\n"                       \
    "Export the memory as an Arrow array for another library: capsules \"arrow_schema\" and\n"     \
    "\"arrow_array\". The elements are bytes, and requested_schema has no effect.\n"               \
    "The array holds a reference until the release; memrt.holders() lists the reference.\n"        \
    "Raises BufferError for memory of a CUDA device, MemoryError."
#define MEMRT_ARROW_DEVICE_ARRAY_DOC                                                               \
    "__arrow_c_device_array__(requested_schema=None, **kwargs) -> (PyCapsule, PyCapsule)\n\n"      \
    "Export as __arrow_c_array__(), with the device of the memory: capsules \"arrow_schema\"\n"    \
    "and \"arrow_device_array\". Raises NotImplementedError for other keywords, unless None."

extern PyMethodDef memrt__arrow_export_methods[];

#endif
