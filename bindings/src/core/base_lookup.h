#ifndef MEMRT_BINDINGS_CORE_BASE_LOOKUP_H
#define MEMRT_BINDINGS_CORE_BASE_LOOKUP_H

#include "support/binding.h"

/// Find the buffer behind an array by walking the chain of bases.
extern PyMethodDef memrt__lookup_methods[];

/// Return whether memrt manages the memory behind an array, memoryview, capsule or MemInfo. -1 with
/// MemoryError.
int memrt__is_managed(PyObject *object);

/// Return the MemInfo object behind an array, memoryview, capsule or MemInfo. New reference. NULL
/// with ValueError when memrt does not manage the memory, or with MemoryError.
PyObject *memrt__lookup(PyObject *object);

#endif
