#ifndef MEMRT_LOOKUP_H
#define MEMRT_LOOKUP_H

#include "binding.h"

/// Whose memory an array is in: answers found by walking its chain of bases.
extern PyMethodDef memrt__lookup_methods[];

/// Whether the memory behind an array, memoryview, capsule or MemInfo is managed by memrt. -1 with
/// MemoryError.
int memrt__is_managed(PyObject *object);

/// The MemInfo object behind an array, memoryview, capsule or MemInfo; new reference. NULL with
/// ValueError when the memory is not memrt's, MemoryError.
PyObject *memrt__lookup(PyObject *object);

#endif
