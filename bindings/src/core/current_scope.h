#ifndef MEMRT_BINDINGS_CORE_CURRENT_SCOPE_H
#define MEMRT_BINDINGS_CORE_CURRENT_SCOPE_H

#include "support/binding.h"

#include <stdatomic.h>

/// The current scope of a context, and handlers in the scope. The current scope is kept in a
/// context variable, so tasks inherit the scope as they inherit NumPy's handler.

/// Name of a capsule over a scope, which holds one reference.
#define MEMRT_SCOPE_CAPSULE "memrt.scope"

/// Context variable with a tuple: the entries of the open scopes of a context, innermost last. Set
/// at import.
extern PyObject *memrt__current_scope_variable;

/// Return the handler of the same policy in the scope of this context; outside of scopes, `handler`
/// itself. Steals a reference to `handler`, also on failure. NULL with an exception.
PyObject *memrt__current_scope_handler(PyObject *handler);

/// Return the scope entries of this context, borrowed from the context. NULL while no scope was
/// ever opened.
PyObject *memrt__current_scope_entries(void);

/// Return the innermost scope of this context, borrowed from the context, or NULL.
memrt_scope_t *memrt__current_scope(void);

/// Note that a scope was opened. Until the first call, no context has a scope.
void memrt__current_scope_note_opened(void);

/// Whether any scope was ever opened. Never cleared: contexts are copied, so the end of the last
/// copy is unknown. Only for the function below.
extern atomic_bool memrt__scope_was_opened;

/// Return whether any context may be in a scope. Needs no GIL.
static inline int memrt__current_scope_is_used(void)
{
    return atomic_load_explicit(&memrt__scope_was_opened, memory_order_relaxed);
}

/// Set the scope entries of a context.
extern PyMethodDef memrt__current_scope_methods[];

/// Create the context variable. Call once, at import. -1 with an exception.
int memrt__current_scope_setup(PyObject *module);

#endif
