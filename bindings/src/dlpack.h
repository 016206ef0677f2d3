#ifndef MEMRT_BINDINGS_DLPACK_H
#define MEMRT_BINDINGS_DLPACK_H

#include "meminfo.h"

#include <memrt/dlpack.h>

/// Capsules with DLPack tensors, made as its specification for Python has it.

/// Names of the capsules.
#define MEMRT_DLPACK_VERSIONED "dltensor_versioned"
#define MEMRT_DLPACK_UNVERSIONED "dltensor"

/// What a method `__dlpack__` returns: a capsule with a new export of `base`. Arguments as
/// METH_FASTCALL | METH_KEYWORDS gives them: stream, max_version, dl_device, copy. BufferError for
/// what cannot be exported in the way that is asked for, ValueError for an argument of a wrong
/// kind, TypeError for an unknown one alone: consumers then ask again without arguments.
PyObject *memrt__dlpack_produce(memrt_meminfo_object_t *base, const memrt_dlpack_view_t *view,
                                PyObject *const *args, Py_ssize_t count, PyObject *names);

/// What `__dlpack_device__` returns.
PyObject *memrt__dlpack_device_tuple(const memrt_meminfo_t *mi);

/// Where the memory is.
DLDevice memrt__dlpack_device(const memrt_meminfo_t *mi);

/// A new export in the newest version; -1 with an exception.
int memrt__dlpack_export(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view,
                         DLManagedTensorVersioned **out);

/// Take all bytes of a MemInfo for elements.
memrt_dlpack_view_t memrt__dlpack_bytes(const memrt_meminfo_t *mi);

/// What both types say of their methods.
#define MEMRT_DLPACK_DOC                                                                           \
    "__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None) -> PyCapsule\n\n"     \
    "The memory as a DLPack tensor, for another library, which takes it out of the capsule.\n"     \
    "stream: None; of memory that is not the CPU's also -1 or a stream of its device.\n"           \
    "max_version: (major, minor) that the consumer knows; None: from before version 1.0.\n"        \
    "dl_device: (type, id) of the memory, or (1, 0), the CPU. copy: True, False, or None.\n"       \
    "It holds a reference, which memrt.holders() shows, until the deleter is called.\n"            \
    "Raises BufferError for what cannot be exported so, ValueError for a bad argument,\n"          \
    "MemoryError."
#define MEMRT_DLPACK_DEVICE_DOC                                                                    \
    "__dlpack_device__() -> (int, int)\n\n"                                                        \
    "DLPack's type of the device that the memory is on, and its number: (1, 0) is the CPU."

#endif
