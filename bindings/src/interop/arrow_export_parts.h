#ifndef MEMRT_BINDINGS_INTEROP_ARROW_EXPORT_PARTS_H
#define MEMRT_BINDINGS_INTEROP_ARROW_EXPORT_PARTS_H

#include "support/binding.h"

#include <memrt/arrow.h>

/// Arrow structs of arrays with any number of buffers, with children or with a dictionary. The
/// release callbacks use no Python: a consumer may call the callbacks on any thread, without the
/// GIL, also after the end of Python.
///
/// `parts`: a tuple as memrt__arrow_take_parts describes arrays. But each buffer is None, or a pair
/// of a MemInfo and the number of bytes before the buffer. The caller guarantees that the parts fit
/// together.

/// Fill in the schema of parts. -1 with TypeError or MemoryError, and `out` is released.
int memrt__arrow_build_schema(PyObject *parts, struct ArrowSchema *out);

/// Fill in the array of parts, which holds a reference to the MemInfo of each buffer. -1 with
/// BufferError for device memory, TypeError or MemoryError, and `out` is released.
int memrt__arrow_build_array(PyObject *parts, struct ArrowArray *out);

/// Copy a schema of memrt__arrow_build_schema, with all children. -1 without memory, and nothing is
/// filled in. Threads: any, without the GIL.
int memrt__arrow_copy_schema(const struct ArrowSchema *schema, struct ArrowSchema *out);

#endif
