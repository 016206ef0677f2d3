#ifndef MEMRT_BINDINGS_TYPES_SNAPSHOT_H
#define MEMRT_BINDINGS_TYPES_SNAPSHOT_H

#include "support/binding.h"

/// Statistics of all levels at one moment.
extern PyMethodDef memrt__snapshot_methods[];

#endif
