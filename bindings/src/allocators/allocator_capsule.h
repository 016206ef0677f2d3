#ifndef MEMRT_BINDINGS_ALLOCATORS_ALLOCATOR_CAPSULE_H
#define MEMRT_BINDINGS_ALLOCATORS_ALLOCATOR_CAPSULE_H

#include "support/binding.h"

/// Allocators as capsules with the name MEMRT_ALLOCATOR_CAPSULE of memrt/capsule.h.
///
/// A capsule of this module owns its allocator until a policy takes the allocator. The capsule then
/// has another name, and a second policy refuses the capsule.

/// Return a new capsule of this module, or NULL with an exception. Takes over the allocator, also
/// on failure. The table must have a `destroy`. `runs_python`: functions of the allocator run
/// Python code.
PyObject *memrt__allocator_as_capsule(const memrt_allocator_t *allocator, int runs_python);

/// Return 1 if functions of a capsule's allocator run Python code, else 0.
int memrt__allocator_runs_python(PyObject *capsule);

/// Take the allocator out of a capsule of this module. Call memrt__allocator_untake() if no policy
/// owns the allocator in the end.
/// Failure: -1 with TypeError or ValueError.
int memrt__allocator_take(PyObject *capsule, const memrt_allocator_t **out);

/// Return the taken allocator of a capsule of this module. The caller must hold the policy with the
/// allocator. NULL with TypeError or ValueError.
const memrt_allocator_t *memrt__allocator_of_policy(PyObject *capsule);

/// Give a taken allocator back to its capsule.
void memrt__allocator_untake(PyObject *capsule);

extern PyMethodDef memrt__allocator_methods[];

#endif
