#ifndef MEMRT_INTERFACE_H
#define MEMRT_INTERFACE_H

#include "meminfo.h"

/// NumPy's array interface of a MemInfo, an array of its bytes, for code that knows no buffers.

/// What `__array_interface__` is: a dict of its own each time.
PyObject *memrt__interface_dict(memrt_meminfo_object_t *self, void *unused);

/// What `__array_struct__` is: a capsule that holds the MemInfo object.
PyObject *memrt__interface_struct(memrt_meminfo_object_t *self, void *unused);

#endif
