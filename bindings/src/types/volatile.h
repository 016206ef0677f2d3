#ifndef MEMRT_BINDINGS_TYPES_VOLATILE_H
#define MEMRT_BINDINGS_TYPES_VOLATILE_H

#include "support/binding.h"

/// Contents of volatile arrays as capsules, and their pins as MemInfos.
extern PyMethodDef memrt__volatile_methods[];

#endif
