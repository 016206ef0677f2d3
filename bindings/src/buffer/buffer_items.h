#ifndef MEMRT_BINDINGS_BUFFER_BUFFER_ITEMS_H
#define MEMRT_BINDINGS_BUFFER_BUFFER_ITEMS_H

#include "support/binding.h"
#include "support/ndarray.h"

/// Object of the type. The critical section of the object protects the members from `length` on.
///
/// Invariant: the first `length` items lie in the data of `mi`, at an address that never changes.
/// Views hold references to `mi` and see no more items than `length` at their creation. So the data
/// shrinks only while the object has the only reference.
typedef struct memrt_buffer_object {
    PyObject ob_base;
    memrt_meminfo_t *mi; /* one reference */
    PyArray_Descr *descr;
    char *data;
    size_t itemsize;
    size_t reserve; /* bytes */
    size_t length;  /* items */
    size_t written; /* bytes from the start that may differ from 0, besides the items */
    int growing;    /* a growth frees memory, and may run Python code */
} memrt_buffer_object_t;

/// Append `count` items of the dtype. -1 with MemoryError, and nothing changed.
int memrt__buffer_add(memrt_buffer_object_t *self, const void *items, size_t count);

/// Set the number of items; new items are zero. -1 with BufferError or MemoryError, and nothing
/// changed.
int memrt__buffer_resize(memrt_buffer_object_t *self, size_t length);

/// Return the memory behind the last item to the system. -1 with BufferError.
int memrt__buffer_fit(memrt_buffer_object_t *self);

#endif
