#ifndef MEMRT_BINDINGS_BUFFER_BUFFER_TYPE_H
#define MEMRT_BINDINGS_BUFFER_BUFFER_TYPE_H

#include "support/binding.h"

/// Python type memrt.types.Buffer: items in reserved addresses, which grow without a move.

/// Create the type. Call once, at import. -1 with an exception.
int memrt__buffer_setup(PyObject *module);

#endif
