#ifndef MEMRT_BINDINGS_OBSERVE_FRAME_LOCALS_H
#define MEMRT_BINDINGS_OBSERVE_FRAME_LOCALS_H

#include "support/binding.h"

#include <frameobject.h>

/// Read the variables of frames without the side effect of f_locals. On Python 3.10 to 3.12,
/// f_locals leaves the frame with a dict that keeps all values alive.

/// Whether memrt__frame_visit() visits all references of a frame that calls into C, including the
/// operands.
extern const int memrt__frame_shows_operands;

/// Visit the objects of the variables of a running frame, with cells as cells. Also visits the
/// operands of expressions in progress, where the interpreter reveals the operands. Skips borrowed
/// objects, and frames of generators, if the generator visits the objects. Runs no Python code.
/// Returns 0, or the first result of `visit` other than 0.
int memrt__frame_visit(PyFrameObject *frame, visitproc visit, void *arg);

/// Visit the referents that the cycle collector sees, for an object with tp_traverse. Leaves out
/// borrowed operands of generators and coroutines. Returns 0, or the first result of `visit` other
/// than 0.
int memrt__object_traverse(PyObject *object, visitproc visit, void *arg);

/// Return a new list of (name, value) pairs for any frame, with cells as cells. NULL with an
/// exception.
PyObject *memrt__frame_locals(PyFrameObject *frame);

#endif
