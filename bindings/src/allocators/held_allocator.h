#ifndef MEMRT_BINDINGS_ALLOCATORS_HELD_ALLOCATOR_H
#define MEMRT_BINDINGS_ALLOCATORS_HELD_ALLOCATOR_H

#include "support/binding.h"

/// Allocators in C code that a Python object keeps alive: the object owns the table, the context or
/// the functions. Each call passes through a function of this module, which replaces the context.

/// Create an allocator over a copy of `table`. Takes a new reference to `keeper` until the end of
/// the allocator. At the end, the `destroy` of the table runs first. Failure: -1 with an exception,
/// and the table is not destroyed.
int memrt__held_allocator_new(const memrt_allocator_t *table, PyObject *keeper,
                              memrt_allocator_t *out);

#endif
