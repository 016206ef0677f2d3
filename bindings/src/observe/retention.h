#ifndef MEMRT_BINDINGS_OBSERVE_RETENTION_H
#define MEMRT_BINDINGS_OBSERVE_RETENTION_H

#include "support/binding.h"

/// Find buffers that are kept alive by views of only a part of their bytes.
extern PyMethodDef memrt__retention_methods[];

#endif
