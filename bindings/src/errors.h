#ifndef MEMRT_ERRORS_H
#define MEMRT_ERRORS_H

#include "binding.h"

/// Set the exception that belongs to `status`: "what: sentence of the status"; `what` as for
/// printf and PyUnicode_FromFormat alike. The only file where
/// a status becomes an exception. Returns NULL.
PyObject *memrt__raise(memrt_status_t status, const char *what, ...);

/// The same with the sentence that a call has written, of MEMRT__WHY_MAX bytes at most.
PyObject *memrt__raise_why(memrt_status_t status, const char *why);
#define MEMRT__WHY_MAX 256

/// Set BufferError, "what: why", for memory that an exchange does not have; MemoryError where there
/// was none, and then `why` is not read. Returns NULL.
PyObject *memrt__raise_refusal(memrt_status_t status, const char *what, const char *why);

/// What a call for CUDA came to, with what the driver says of it. `memory` and `size` are what was
/// asked for; MEMRT_MEMORY_HOST: no memory was.
PyObject *memrt__raise_cuda(memrt_status_t status, uint32_t memory, size_t size);

/// 0 where there is a CUDA driver, else -1 with an exception that says why not.
int memrt__need_cuda(void);

/// Make the class memrt.cuda.CudaError; once, at import. -1 with an exception.
int memrt__errors_setup(PyObject *module);

/// An exception that was pending, put aside so that other Python code may run.
typedef struct memrt_pending {
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
} memrt_pending_t;

void memrt__pending_save(memrt_pending_t *pending);

/// Put it back if there was one; an exception that came up meanwhile then gives way.
void memrt__pending_restore(memrt_pending_t *pending);

#endif
