#ifndef MEMRT_BINDINGS_OBSERVE_RETENTION_H
#define MEMRT_BINDINGS_OBSERVE_RETENTION_H

#include "support/binding.h"

/// Find buffers that are kept alive by views of only a part of the buffer: the module function
/// find_retention(), for memrt.debug.retention(). The bytes outside of all views are wasted. A view
/// counts if the view has a reference other than as the base of another view.
extern PyMethodDef memrt__retention_methods[];

#endif
