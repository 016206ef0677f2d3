#ifndef MEMRT_BINDINGS_INTEROP_CUDA_BUFFER_H
#define MEMRT_BINDINGS_INTEROP_CUDA_BUFFER_H

#include "core/meminfo_object.h"

/// Create buffers in CUDA memory, each on the account of its memory kind: new buffers, copies, and
/// adopted memory. Driver calls may block, so the GIL is released during each of them.

/// Allocate a new buffer of a CUDA memory kind, on the account of that kind. Device -1 means the
/// device of the current context. `keep` lives as long as the buffer; NULL: no object. NULL with an
/// exception.
memrt_meminfo_object_t *memrt__cuda_buffer_new(uint32_t memory, int32_t device, size_t size,
                                               PyObject *keep);

/// Return the handler of the policy that accounts for adopted CUDA buffers, in the scope of this
/// context. New reference, or NULL with an exception.
PyObject *memrt__cuda_buffer_foreign_handler(void);

/// Copy bytes of a CUDA buffer into a new buffer of the same memory kind and device. `keep` lives
/// as long as the new buffer; NULL: no object. NULL with an exception.
memrt_meminfo_object_t *memrt__cuda_buffer_copy(memrt_meminfo_t *mi, size_t offset, size_t size,
                                                PyObject *keep);

/// Functions of memrt.cuda that create buffers.
extern PyMethodDef memrt__cuda_buffer_methods[];

#endif
