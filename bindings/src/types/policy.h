#ifndef MEMRT_BINDINGS_TYPES_POLICY_H
#define MEMRT_BINDINGS_TYPES_POLICY_H

#include "support/binding.h"

/// Expose policies to Python. A policy is represented by its handler capsule, which holds one
/// reference.
extern PyMethodDef memrt__policy_methods[];

#endif
