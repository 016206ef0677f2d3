#ifndef MEMRT_BINDINGS_ARROW_H
#define MEMRT_BINDINGS_ARROW_H

#include "meminfo.h"

#include <memrt/arrow.h>

/// Capsules with Arrow's arrays, made and taken as Arrow's PyCapsule interface has it.

/// The methods of MemInfo, which is an array of its bytes. Arguments as METH_FASTCALL |
/// METH_KEYWORDS gives them.
PyObject *memrt__arrow_schema_of(memrt_meminfo_object_t *self, PyObject *unused);
PyObject *memrt__arrow_array_of(memrt_meminfo_object_t *self, PyObject *const *args,
                                Py_ssize_t count, PyObject *names);
PyObject *memrt__arrow_device_array_of(memrt_meminfo_object_t *self, PyObject *const *args,
                                       Py_ssize_t count, PyObject *names);

#define MEMRT_ARROW_SCHEMA_DOC                                                                     \
    "__arrow_c_schema__() -> PyCapsule\n\nWhat the elements are: a capsule \"arrow_schema\"."
#define MEMRT_ARROW_ARRAY_DOC                                                                      \
    "__arrow_c_array__(requested_schema=None) -> (PyCapsule, PyCapsule)\n\n"                       \
    "The memory as an Arrow array, for another library: capsules \"arrow_schema\" and\n"           \
    "\"arrow_array\". No other elements are made of it, whatever schema is requested.\n"           \
    "The array holds a reference, which memrt.holders() shows, until it is released.\n"            \
    "Raises MemoryError."
#define MEMRT_ARROW_DEVICE_ARRAY_DOC                                                               \
    "__arrow_c_device_array__(requested_schema=None, **kwargs) -> (PyCapsule, PyCapsule)\n\n"      \
    "As __arrow_c_array__(), with the device, the CPU: capsules \"arrow_schema\" and\n"            \
    "\"arrow_device_array\". Raises NotImplementedError for keywords that are not None."

extern PyMethodDef memrt__arrow_methods[];

#endif
