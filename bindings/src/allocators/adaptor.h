#ifndef MEMRT_BINDINGS_ALLOCATORS_ADAPTOR_H
#define MEMRT_BINDINGS_ALLOCATORS_ADAPTOR_H

#include "support/binding.h"

/// Adaptors over allocators in capsules (allocator_capsule.h).
extern PyMethodDef memrt__adaptor_methods[];

#endif
