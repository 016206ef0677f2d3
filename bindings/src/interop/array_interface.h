#ifndef MEMRT_BINDINGS_INTEROP_ARRAY_INTERFACE_H
#define MEMRT_BINDINGS_INTEROP_ARRAY_INTERFACE_H

#include "core/meminfo_object.h"

/// Implement NumPy's array interface for MemInfo, as an array of bytes. For code that does not use
/// the buffer protocol.

/// Return `__array_interface__`: a new dict on each access.
PyObject *memrt__array_interface_dict(memrt_meminfo_object_t *self, void *unused);

/// Return `__array_struct__`: a capsule that holds the MemInfo object.
PyObject *memrt__array_interface_struct(memrt_meminfo_object_t *self, void *unused);

#endif
