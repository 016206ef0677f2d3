#ifndef MEMRT_NRT_MEMINFO_H
#define MEMRT_NRT_MEMINFO_H

#include "binding.h"

/// `_MemInfo`, Numba's Python object over a MemInfo: built from an address, whose reference it
/// steals. It is what Numba's contract says, no more; memrt.MemInfo is memrt's own.

/// New object; steals the reference, also on failure.
PyObject *memrt__nrt_meminfo_object(memrt_meminfo_t *mi);

/// The MemInfo of a `_MemInfo`: a new reference.
memrt_meminfo_t *memrt__nrt_meminfo_from_pyobject(PyObject *object);

/// Whether an object is a `_MemInfo`.
int memrt__nrt_meminfo_check(PyObject *object);

/// The MemInfo of a `_MemInfo`, borrowed; NULL while it is being built.
memrt_meminfo_t *memrt__nrt_meminfo_borrow(PyObject *object);

/// Make the type; once. -1 with an exception.
int memrt__nrt_meminfo_setup(PyObject *module);

#endif
