#ifndef MEMRT_BINDINGS_BUFFER_BUFFER_VALUES_H
#define MEMRT_BINDINGS_BUFFER_BUFFER_VALUES_H

#include "buffer/buffer_items.h"

/// Conversion of Python values to items of a buffer.

/// Maximum bytes of an item that memrt__buffer_store() writes.
#define MEMRT_NUMBER_BYTES 8

/// Store an exact number of the dtype, without a call of Python code. 0: another case.
int memrt__buffer_store(const memrt_buffer_object_t *self, PyObject *value, void *out);

/// Convert a value to an array of one item. NULL with an exception.
PyArrayObject *memrt__buffer_value(const memrt_buffer_object_t *self, PyObject *value);

/// Convert values to a contiguous array of the dtype with one dimension. NULL with an exception.
PyArrayObject *memrt__buffer_values(const memrt_buffer_object_t *self, PyObject *values);

#endif
