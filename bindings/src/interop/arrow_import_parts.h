#ifndef MEMRT_BINDINGS_INTEROP_ARROW_IMPORT_PARTS_H
#define MEMRT_BINDINGS_INTEROP_ARROW_IMPORT_PARTS_H

#include "support/binding.h"

#include <memrt/arrow.h>

/// Import of Arrow arrays with any number of buffers, with children or with a dictionary. The whole
/// array moves into the owner of one MemInfo, and the parts are described by addresses.

/// Move an array out of its struct, and describe its parts. `array` may be NULL: the description
/// is then of an array without elements. Returns a tuple of the MemInfo that releases the array,
/// None without an array, and of the description:
/// (format, name, bool8, flags, length, nulls, offset, buffers, children, dictionary).
/// Failure: NULL with BufferError or MemoryError. The array is released or unchanged then.
PyObject *memrt__arrow_take_parts(const struct ArrowSchema *schema, struct ArrowArray *array,
                                  memrt_policy_t *policy);

#endif
