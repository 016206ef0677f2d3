#ifndef MEMRT_BINDINGS_ALLOCATORS_FAULT_INJECTION_H
#define MEMRT_BINDINGS_ALLOCATORS_FAULT_INJECTION_H

#include "support/binding.h"

/// Functions of the package for fault injection.
extern PyMethodDef memrt__failure_methods[];

#endif
