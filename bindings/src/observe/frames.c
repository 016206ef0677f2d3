#include "observe/frames.h"

#include "core/cpython_frame.h"

#if MEMRT_CPYTHON_FRAMES && PY_VERSION_HEX >= 0x030B0000

#include <unistd.h>

#include "core/interpreter.h"

#define WRITTEN_MAX 32 /* innermost calls in a report of a refused access */

size_t memrt__frames_of(PyThreadState *thread, memrt_call_t *out, size_t max)
{
    size_t count = 0;
    for (memrt_inner_frame_t *frame = memrt__inner_frame_of(thread); frame != NULL && count < max;
         frame = frame->previous) {
        /* GCOV_EXCL_BR_START: a collection while CPython makes cells finds incomplete frames */
        if (!_PyFrame_IsIncomplete(frame)) {
            /* GCOV_EXCL_BR_STOP */
            int instruction = _PyInterpreterFrame_LASTI(frame) * (int)sizeof(_Py_CODEUNIT);
            out[count++] = (memrt_call_t){memrt__inner_frame_code(frame), instruction};
        }
    }
    return count;
}

/* GCOV_EXCL_BR_START: a refused access ends the process, and the counters are lost */

/// Write an ASCII text. A text with further characters gives "?", because the encoding needs
/// memory.
static void write_text(int file, PyObject *text)
{
    int is_ascii = PyUnicode_IS_COMPACT_ASCII(text);
    const char *bytes = is_ascii ? (const char *)PyUnicode_1BYTE_DATA(text) : "?";
    (void)!write(file, bytes, is_ascii ? (size_t)PyUnicode_GET_LENGTH(text) : 1);
}

static void write_number(int file, unsigned number)
{
    char digits[12];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    (void)!write(file, digits + at, sizeof(digits) - at);
}

/// Write the Python calls of the calling thread, in a signal handler. Only the thread changes its
/// frames, so the GIL is not needed.
static void write_running_calls(int file)
{
    memrt_call_t calls[WRITTEN_MAX];
    PyThreadState *thread = PyGILState_GetThisThreadState();
    size_t count = thread == NULL ? 0 : memrt__frames_of(thread, calls, WRITTEN_MAX);
    for (size_t i = 0; i < count; i++) {
        int line = PyCode_Addr2Line(calls[i].code, calls[i].instruction);
        (void)!write(file, "\n    ", 5);
        write_text(file, calls[i].code->co_qualname);
        (void)!write(file, " at ", 4);
        write_text(file, calls[i].code->co_filename);
        (void)!write(file, ":", 1);
        write_number(file, line > 0 ? (unsigned)line : 0);
    }
}

/* GCOV_EXCL_BR_STOP */

void memrt__frames_setup(void)
{
    memrt__api()->set_write_frames(write_running_calls);
}

#else

#include "support/errors.h"

void memrt__frames_setup(void)
{
}

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
