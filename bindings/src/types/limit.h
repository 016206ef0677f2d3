#ifndef MEMRT_BINDINGS_TYPES_LIMIT_H
#define MEMRT_BINDINGS_TYPES_LIMIT_H

#include "support/binding.h"

/// Limits of live bytes, of the process, policies and scopes.
extern PyMethodDef memrt__limit_methods[];

#endif
