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
    "__arrow_c_schema__($self, /)\n"                                                               \
    "--\n"                                                                                         \
    "\n"                                                                                           \
    "Return the type of the elements.\n"                                                           \
    "\n"                                                                                           \
    "Returns\n"                                                                                    \
    "-------\n"                                                                                    \
    "PyCapsule\n"                                                                                  \
    "    Capsule 'arrow_schema'."
#define MEMRT_ARROW_ARRAY_DOC                                                                      \
    "__arrow_c_array__($self, /, requested_schema=None)\n"                                         \
    "--\n"                                                                                         \
    "\n"                                                                                           \
    "Export the memory as an Arrow array of bytes, for another library.\n"                         \
    "\n"                                                                                           \
    "Parameters\n"                                                                                 \
    "----------\n"                                                                                 \
    "requested_schema : PyCapsule, optional\n"                                                     \
    "    Without effect: the elements are always bytes.\n"                                         \
    "\n"                                                                                           \
    "Returns\n"                                                                                    \
    "-------\n"                                                                                    \
    "tuple of PyCapsule\n"                                                                         \
    "    Capsules 'arrow_schema' and 'arrow_array'. The array holds a reference until the\n"       \
    "    release; :func:`memrt.holders` lists the reference.\n"                                    \
    "\n"                                                                                           \
    "Raises\n"                                                                                     \
    "------\n"                                                                                     \
    "BufferError\n"                                                                                \
    "    The memory is on a CUDA device.\n"                                                        \
    "MemoryError\n"                                                                                \
    "    The allocation of the array failed."
#define MEMRT_ARROW_DEVICE_ARRAY_DOC                                                               \
    "__arrow_c_device_array__($self, /, requested_schema=None, **kwargs)\n"                        \
    "--\n"                                                                                         \
    "\n"                                                                                           \
    "Export the memory as an Arrow array of bytes, with the device of the memory.\n"               \
    "\n"                                                                                           \
    "Parameters\n"                                                                                 \
    "----------\n"                                                                                 \
    "requested_schema : PyCapsule, optional\n"                                                     \
    "    Without effect: the elements are always bytes.\n"                                         \
    "**kwargs : None\n"                                                                            \
    "    Further keywords of Arrow's protocol. Only None is supported.\n"                          \
    "\n"                                                                                           \
    "Returns\n"                                                                                    \
    "-------\n"                                                                                    \
    "tuple of PyCapsule\n"                                                                         \
    "    Capsules 'arrow_schema' and 'arrow_device_array'.\n"                                      \
    "\n"                                                                                           \
    "Raises\n"                                                                                     \
    "------\n"                                                                                     \
    "NotImplementedError\n"                                                                        \
    "    A further keyword is not None.\n"                                                         \
    "MemoryError\n"                                                                                \
    "    The allocation of the array failed."

extern PyMethodDef memrt__arrow_export_methods[];

#endif
