#ifndef MEMRT_BINDINGS_BUFFER_BUFFER_CREATION_H
#define MEMRT_BINDINGS_BUFFER_BUFFER_CREATION_H

#include "buffer/buffer_items.h"

/// Allocate the memory of a new object. `dtype` and `reserve` may be NULL, for the defaults;
/// `policy` may be None. -1 with an exception; the object is then only fit for its end.
int memrt__buffer_fill(memrt_buffer_object_t *self, size_t capacity, PyObject *dtype,
                       PyObject *reserve, PyObject *policy);

#endif
