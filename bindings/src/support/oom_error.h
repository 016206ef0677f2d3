#ifndef MEMRT_BINDINGS_SUPPORT_OOM_ERROR_H
#define MEMRT_BINDINGS_SUPPORT_OOM_ERROR_H

#include "support/binding.h"

/// Raise memrt.OutOfMemoryError, the MemoryError whose text explains the failure. Raising allocates
/// no memory: an instance is prepared in advance.

/// Create the class and the first instance. Call once, at import. -1 with an exception.
int memrt__oom_error_setup(PyObject *module);

/// Raise OutOfMemoryError for `size` bytes of a policy. NULL means the default policy, and 0 bytes
/// is described at memrt_api_t.explain_shortage. `what`, or NULL, becomes the first line. Without a
/// prepared instance, raise a MemoryError without a text. The exception that an allocator in Python
/// raised before is the `__cause__` (refusal_cause.h). Returns NULL.
PyObject *memrt__raise_out_of_memory(const memrt_policy_t *policy, size_t size, const char *what);

#endif
