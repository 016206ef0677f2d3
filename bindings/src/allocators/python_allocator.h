#ifndef MEMRT_BINDINGS_ALLOCATORS_PYTHON_ALLOCATOR_H
#define MEMRT_BINDINGS_ALLOCATORS_PYTHON_ALLOCATOR_H

#include "support/binding.h"

/// Allocators whose functions are Python callables: `allocate(nbytes, alignment)` returns an
/// address or a writable buffer, and `free(address, nbytes)` takes the memory back.
///
/// Threads, for the functions of the table:
/// - An allocation without the GIL waits for the GIL. Where Python code must not run, the
/// allocation
///   is refused (memrt__interpreter_enter()).
/// - A free never waits for the GIL. Without the GIL, a free is queued for a thread with the GIL,
/// as
///   the owners of core/owner.h are. During finalization, and later, the memory is leaked and
///   counted as a dropped owner.
/// - An allocation inside of `allocate`, on the same thread and from the same allocator, comes from
///   the default allocator.
///
/// Failure: an exception of `allocate`, and a wrong result, refuse the allocation. The exception
/// becomes the cause of a following OutOfMemoryError. All exceptions except MemoryError also go to
/// sys.unraisablehook, because NumPy's own error has no cause.

/// Create an allocator. `free_function` may be NULL: results must be buffers. The table's `destroy`
/// drops the callables.
/// Failure: -1 with an exception.
int memrt__python_allocator_new(PyObject *allocate, PyObject *free_function,
                                memrt_allocator_t *out);

#endif
