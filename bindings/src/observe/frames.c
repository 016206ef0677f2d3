#include "observe/frames.h"

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030E0000

#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include <internal/pycore_frame.h>

typedef struct _PyInterpreterFrame inner_frame_t;

static inner_frame_t *get_innermost_frame(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_Get()->current_frame;
#else
    return PyThreadState_Get()->cframe->current_frame;
#endif
}

static PyCodeObject *get_frame_code(inner_frame_t *frame)
{
#if PY_VERSION_HEX >= 0x030D0000
    return _PyFrame_GetCode(frame);
#else
    return frame->f_code;
#endif
}

size_t memrt__frames_here(memrt_call_t *out, size_t max)
{
    size_t count = 0;
    for (inner_frame_t *frame = get_innermost_frame(); frame != NULL && count < max;
         frame = frame->previous) {
        /* GCOV_EXCL_BR_START: only a collection while CPython makes cells meets such a frame */
        if (!_PyFrame_IsIncomplete(frame)) {
            /* GCOV_EXCL_BR_STOP */
            int instruction = _PyInterpreterFrame_LASTI(frame) * (int)sizeof(_Py_CODEUNIT);
            out[count++] = (memrt_call_t){get_frame_code(frame), instruction};
        }
    }
    return count;
}

#else

#include <frameobject.h>

#include "support/errors.h"

static int get_frame_instruction(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030B0000
    return PyFrame_GetLasti(frame);
#else
    return frame->f_lasti * (int)sizeof(_Py_CODEUNIT);
#endif
}

size_t memrt__frames_here(memrt_call_t *out, size_t max)
{
    memrt_pending_t pending;
    memrt__pending_save(&pending);
    size_t count = 0;
    PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
    while (frame != NULL && count < max) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        Py_DECREF(code); /* the running call holds another reference */
        out[count++] = (memrt_call_t){code, get_frame_instruction(frame)};
        PyFrameObject *caller = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = caller;
    }
    Py_XDECREF(frame);
    PyErr_Clear(); /* MemoryError of a frame object that could not be created */
    memrt__pending_restore(&pending);
    return count;
}

#endif
