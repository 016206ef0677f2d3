#ifndef MEMRT_BINDINGS_INTEROP_DLPACK_IMPORT_H
#define MEMRT_BINDINGS_INTEROP_DLPACK_IMPORT_H

#include "support/binding.h"

/// Import DLPack tensors of other libraries by from_dlpack() and from capsules.

/// Create the Python objects that each call of from_dlpack() uses. Call once, at import. -1 with an
/// exception.
int memrt__dlpack_import_setup(void);

extern PyMethodDef memrt__dlpack_import_methods[];

#endif
