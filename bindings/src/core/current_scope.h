#ifndef MEMRT_BINDINGS_CORE_CURRENT_SCOPE_H
#define MEMRT_BINDINGS_CORE_CURRENT_SCOPE_H

#include "support/binding.h"

/// The current scope of a context, and handlers in the scope. The current scope is kept in a
/// context variable, so tasks inherit the scope as they inherit NumPy's handler.

/// Name of a capsule over a scope, which holds one reference.
#define MEMRT_SCOPE_CAPSULE "memrt.scope"

/// Return the handler of the same policy in the scope of this context; outside of scopes, `handler`
/// itself. Steals a reference to `handler`, also on failure. NULL with an exception.
PyObject *memrt__current_scope_handler(PyObject *handler);

/// Note that a scope was opened. Until the first call, no context has a scope.
void memrt__current_scope_note_opened(void);

/// Return whether any context may be in a scope. Needs no GIL.
int memrt__current_scope_is_used(void);

/// Create the context variable. Call once, at import. -1 with an exception.
int memrt__current_scope_setup(PyObject *module);

#endif
