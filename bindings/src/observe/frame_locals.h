#ifndef MEMRT_BINDINGS_OBSERVE_FRAME_LOCALS_H
#define MEMRT_BINDINGS_OBSERVE_FRAME_LOCALS_H

#include "support/binding.h"

#include <frameobject.h>

/// Read the variables of frames without the side effect of f_locals. On Python 3.10 to 3.12,
/// f_locals leaves the frame with a dict that keeps all values alive.

/// Visit the values of the variables of a running frame, with cells as cells. Also visits the
/// operands of expressions in progress, where the interpreter reveals them. Runs no Python code.
/// Returns 0, or the first result of `visit` that is not 0.
int memrt__frame_visit(PyFrameObject *frame, visitproc visit, void *arg);

/// Return a new list of (name, value) pairs for any frame, with cells as cells. NULL with an
/// exception.
PyObject *memrt__frame_locals(PyFrameObject *frame);

#endif
