#ifndef MEMRT_BINDINGS_INTEROP_ARROW_IMPORT_H
#define MEMRT_BINDINGS_INTEROP_ARROW_IMPORT_H

#include "support/binding.h"

/// Import Arrow arrays from capsules of arrays and of streams, by Arrow's PyCapsule interface.
/// Importing moves the struct out of the capsule into the owner of a MemInfo.
extern PyMethodDef memrt__arrow_import_methods[];

#endif
