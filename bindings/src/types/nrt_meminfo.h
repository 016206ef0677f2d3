#ifndef MEMRT_BINDINGS_TYPES_NRT_MEMINFO_H
#define MEMRT_BINDINGS_TYPES_NRT_MEMINFO_H

#include "support/binding.h"

/// Implement `_MemInfo`, Numba's Python object over a MemInfo. Its constructor takes an address and
/// steals the reference. The type provides exactly Numba's contract; memrt.MemInfo is the type for
/// users of memrt.

/// Create a `_MemInfo`. Steals the reference, also on failure. NULL with MemoryError.
PyObject *memrt__nrt_meminfo_object(memrt_meminfo_t *mi);

/// Return the MemInfo of a `_MemInfo` as a new reference.
memrt_meminfo_t *memrt__nrt_meminfo_from_pyobject(PyObject *object);

/// Return whether an object is a `_MemInfo`.
int memrt__nrt_meminfo_check(PyObject *object);

/// Return the MemInfo of a `_MemInfo`, borrowed; NULL during construction.
memrt_meminfo_t *memrt__nrt_meminfo_borrow(PyObject *object);

/// Create the type. Call once, at import. -1 with an exception.
int memrt__nrt_meminfo_setup(PyObject *module);

#endif
