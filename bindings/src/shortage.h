#ifndef MEMRT_BINDINGS_SHORTAGE_H
#define MEMRT_BINDINGS_SHORTAGE_H

#include "binding.h"

/// The MemoryError that says why, memrt.OutOfMemoryError. Raising it allocates nothing: an error is
/// kept ready.

/// Make the class and the first error, once, at import. -1 with an exception.
int memrt__shortage_setup(PyObject *module);

/// Raise it for `size` bytes of a policy, NULL: the default one; 0 bytes: see explain_shortage.
/// `what`, or NULL, becomes the first line. Where not even an error is ready it is a MemoryError
/// without a text. Returns NULL.
PyObject *memrt__raise_shortage(const memrt_policy_t *policy, size_t size, const char *what);

#endif
