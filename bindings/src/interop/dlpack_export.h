#ifndef MEMRT_BINDINGS_INTEROP_DLPACK_EXPORT_H
#define MEMRT_BINDINGS_INTEROP_DLPACK_EXPORT_H

#include "core/meminfo_object.h"

#include <memrt/dlpack.h>

/// Export memory as DLPack tensors in capsules, as DLPack's specification for Python defines them.

/// Capsule names.
#define MEMRT_DLPACK_VERSIONED "dltensor_versioned"
#define MEMRT_DLPACK_UNVERSIONED "dltensor"

/// Implement `__dlpack__`: return a capsule with a new export of `base`. Arguments are as
/// METH_FASTCALL | METH_KEYWORDS passes them: stream, max_version, dl_device, copy.
/// Failure: BufferError for an export that cannot be made as requested, ValueError for an argument
/// of a wrong kind. TypeError only for an unknown argument, because consumers then retry without
/// arguments.
PyObject *memrt__dlpack_produce(memrt_meminfo_object_t *base, const memrt_dlpack_view_t *view,
                                PyObject *const *args, Py_ssize_t count, PyObject *names);

/// Implement `__dlpack_device__`: return a tuple (device type, device id).
PyObject *memrt__dlpack_device_tuple(const memrt_meminfo_t *mi);

/// Return the device of the memory.
DLDevice memrt__dlpack_device(const memrt_meminfo_t *mi);

/// Create an export in the newest DLPack version. -1 with an exception.
int memrt__dlpack_export(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view,
                         DLManagedTensorVersioned **out);

/// Return a view with every byte of a MemInfo as an element of type uint8.
memrt_dlpack_view_t memrt__dlpack_bytes(const memrt_meminfo_t *mi);

/// Docstrings of the methods, shared by MemInfo and Tensor.
#define MEMRT_DLPACK_DOC                                                                           \
    "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n"          \
    "--\n"                                                                                         \
    "\n"                                                                                           \
    "Export the memory as a DLPack tensor. The importing library takes the tensor.\n"              \
    "\n"                                                                                           \
    "Parameters\n"                                                                                 \
    "----------\n"                                                                                 \
    "stream : int, optional\n"                                                                     \
    "    None, or for memory of a device also -1 or a stream of the device.\n"                     \
    "max_version : tuple of int, optional\n"                                                       \
    "    Newest (major, minor) of DLPack that the importing library supports. None: a version\n"   \
    "    before 1.0.\n"                                                                            \
    "dl_device : tuple of int, optional\n"                                                         \
    "    (type, id) of the device of the memory, or (1, 0) for the CPU.\n"                         \
    "copy : bool, optional\n"                                                                      \
    "    True: always copy. False: never copy. None: copy if needed.\n"                            \
    "\n"                                                                                           \
    "Returns\n"                                                                                    \
    "-------\n"                                                                                    \
    "PyCapsule\n"                                                                                  \
    "    Capsule with the tensor. The tensor holds a reference until the call of the deleter;\n"   \
    "    :func:`memrt.holders` lists the reference.\n"                                             \
    "\n"                                                                                           \
    "Raises\n"                                                                                     \
    "------\n"                                                                                     \
    "BufferError\n"                                                                                \
    "    The memory cannot be exported with the given arguments.\n"                                \
    "ValueError\n"                                                                                 \
    "    An argument is invalid.\n"                                                                \
    "MemoryError\n"                                                                                \
    "    The allocation of the tensor or the copy failed."
#define MEMRT_DLPACK_DEVICE_DOC                                                                    \
    "__dlpack_device__($self, /)\n"                                                                \
    "--\n"                                                                                         \
    "\n"                                                                                           \
    "Return the device of the memory, as DLPack numbers.\n"                                        \
    "\n"                                                                                           \
    "Returns\n"                                                                                    \
    "-------\n"                                                                                    \
    "tuple of int\n"                                                                               \
    "    Type and number of the device. (1, 0) is the CPU."

#endif
