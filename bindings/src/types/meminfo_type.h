#ifndef MEMRT_BINDINGS_TYPES_MEMINFO_TYPE_H
#define MEMRT_BINDINGS_TYPES_MEMINFO_TYPE_H

#include "support/binding.h"

/// The type memrt.MemInfo: attributes, the buffer protocol and the exchange protocols. The objects
/// themselves are made in core/meminfo_object.h, with the type in memrt__binding.

/// Create the type, and add it to the module. Call once, at import, before any object is made. -1
/// with an exception.
int memrt__meminfo_type_setup(PyObject *module);

#endif
