#ifndef MEMRT_BINDINGS_ALLOCATORS_FAULT_INJECTION_H
#define MEMRT_BINDINGS_ALLOCATORS_FAULT_INJECTION_H

#include "support/binding.h"

/// Control fault injection: allocations that fail on purpose.
extern PyMethodDef memrt__failure_methods[];

#endif
