#include "observe/frames.h"

#include "core/cpython_frame.h"

#if MEMRT_CPYTHON_FRAMES && PY_VERSION_HEX >= 0x030B0000

size_t memrt__frames_of(PyThreadState *thread, memrt_call_t *out, size_t max)
{
    size_t count = 0;
    for (memrt_inner_frame_t *frame = memrt__inner_frame_of(thread); frame != NULL && count < max;
         frame = frame->previous) {
        /* GCOV_EXCL_BR_START: only a collection while CPython makes cells meets such a frame */
        if (!_PyFrame_IsIncomplete(frame)) {
            /* GCOV_EXCL_BR_STOP */
            int instruction = _PyInterpreterFrame_LASTI(frame) * (int)sizeof(_Py_CODEUNIT);
            out[count++] = (memrt_call_t){memrt__inner_frame_code(frame), instruction};
        }
    }
    return count;
}

#else

#include "support/errors.h"

static int get_frame_instruction(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030B0000
    return PyFrame_GetLasti(frame);
#else
    return frame->f_lasti * (int)sizeof(_Py_CODEUNIT);
#endif
}

size_t memrt__frames_of(PyThreadState *thread, memrt_call_t *out, size_t max)
{
    memrt_pending_t pending;
    memrt__pending_save(&pending);
    size_t count = 0;
    PyFrameObject *frame = PyThreadState_GetFrame(thread);
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
