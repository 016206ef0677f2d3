#ifndef MEMRT_BINDINGS_ACCESS_FREEZE_H
#define MEMRT_BINDINGS_ACCESS_FREEZE_H

#include "support/binding.h"

/// Write protection of the pages of a MemInfo, for memrt.debug.freeze.

extern PyMethodDef memrt__freeze_methods[];

#endif
