#ifndef MEMRT_BINDINGS_SUPPORT_ERRORS_H
#define MEMRT_BINDINGS_SUPPORT_ERRORS_H

#include "support/binding.h"

/// Set the exception for `status`, with the text `what: sentence of the status`. The format `what`
/// must be valid for both printf and PyUnicode_FromFormat. errors.c holds the mapping from status
/// codes to exception classes. Returns NULL.
PyObject *memrt__raise(memrt_status_t status, const char *what, ...);

/// Set the exception for `status` with the sentence `why`, which a function of the table wrote.
/// `why` has at most MEMRT__WHY_MAX bytes. Returns NULL.
PyObject *memrt__raise_why(memrt_status_t status, const char *why);
#define MEMRT__WHY_MAX 256

/// Set BufferError, with the text `what: why`, for memory that an exchange protocol cannot
/// describe. For MEMRT_ENOMEM set MemoryError instead, without reading `why`. Returns NULL.
PyObject *memrt__raise_refusal(memrt_status_t status, const char *what, const char *why);

/// Set the exception for a failed CUDA call, with the message of the driver. `memory` and `size`
/// are the requested kind and bytes; MEMRT_MEMORY_HOST: the call requested no memory. Returns NULL.
PyObject *memrt__raise_cuda(memrt_status_t status, uint32_t memory, size_t size);

/// Check for a CUDA driver: 0, or -1 with an exception that states the reason.
int memrt__need_cuda(void);

/// Create the class memrt.cuda.CudaError. Call once, at import. -1 with an exception.
int memrt__errors_setup(PyObject *module);

/// A pending exception, saved so that other Python code may run.
typedef struct memrt_pending {
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
} memrt_pending_t;

/// Save and clear the pending exception, if any.
void memrt__pending_save(memrt_pending_t *pending);

/// Restore the saved exception, if any; it replaces an exception raised in the meantime.
void memrt__pending_restore(memrt_pending_t *pending);

/// Return the pending exception, with its traceback, as a new reference. The exception stays
/// pending.
PyObject *memrt__pending_exception(void);

#endif
