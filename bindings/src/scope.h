#ifndef MEMRT_SCOPE_METHODS_H
#define MEMRT_SCOPE_METHODS_H

#include "binding.h"

/// Scopes of the tree, and the one that a context is in, which is a context variable: tasks inherit
/// it as they inherit NumPy's handler.
extern PyMethodDef memrt__scope_methods[];

/// The handler of the same policy in the scope of this context; outside of scopes the same. Steals
/// a reference to `handler`, also on failure. NULL with an exception.
PyObject *memrt__scope_handler(PyObject *handler);

/// Whether any context may be in a scope. Needs no GIL.
int memrt__scope_is_used(void);

/// Make the context variable; once, at import. -1 with an exception.
int memrt__scope_setup(PyObject *module);

#endif
