#ifndef MEMRT_FRAME_H
#define MEMRT_FRAME_H

#include "binding.h"

#include <frameobject.h>

/// Variables of frames, without the side effects that asking a frame for f_locals has: on Python
/// 3.10 to 3.12 the frame would keep all values alive in a dict from then on.

/// Visit the values of the variables of a frame that runs now, cells as cells, and of what it is in
/// the middle of as far as it can be seen. Runs no code.
int memrt__frame_visit(PyFrameObject *frame, visitproc visit, void *arg);

/// New list of pairs of name and value, cells as cells, of any frame; NULL with an exception.
PyObject *memrt__frame_variables(PyFrameObject *frame);

#endif
