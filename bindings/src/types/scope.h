#ifndef MEMRT_BINDINGS_TYPES_SCOPE_H
#define MEMRT_BINDINGS_TYPES_SCOPE_H

#include "support/binding.h"

/// Manage the scope tree: open and list scopes, and read their accounts. core/current_scope.h has
/// the current scope of a context.
extern PyMethodDef memrt__scope_methods[];

#endif
