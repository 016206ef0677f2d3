#ifndef MEMRT_BINDINGS_SUPPORT_REFUSAL_CAUSE_H
#define MEMRT_BINDINGS_SUPPORT_REFUSAL_CAUSE_H

#include "support/binding.h"

/// Exceptions of allocators in Python, as causes of the OutOfMemoryError that follows on the same
/// thread. The allocator returns NULL through C code, which has no room for an exception.
///
/// Threads: every function needs the GIL. An exception keeps the frames of its traceback alive, so
/// the caller of memrt__refusal_cause_put() schedules memrt__refusal_cause_clear().

/// Keep an exception for the calling thread, in place of an older one. Steals the reference. The
/// exception is dropped if other threads already keep MEMRT_REFUSAL_CAUSES exceptions.
void memrt__refusal_cause_put(PyObject *exception);

/// Return the exception of the calling thread and forget the exception. NULL: none.
PyObject *memrt__refusal_cause_take(void);

/// Forget the exceptions of all threads. In a free-threaded build, only of the calling thread:
/// another thread may be about to take its exception.
void memrt__refusal_cause_clear(void);

#define MEMRT_REFUSAL_CAUSES 16

#endif
