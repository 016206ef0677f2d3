#ifndef MEMRT_BINDINGS_CALLBACKS_RECLAIM_H
#define MEMRT_BINDINGS_CALLBACKS_RECLAIM_H

#include "support/binding.h"

/// Reclaim callbacks in Python, which free memory before memrt refuses an allocation.
extern PyMethodDef memrt__reclaim_methods[];

#endif
