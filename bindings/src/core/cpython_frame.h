#ifndef MEMRT_BINDINGS_CORE_CPYTHON_FRAME_H
#define MEMRT_BINDINGS_CORE_CPYTHON_FRAME_H

#include "support/binding.h"

#include <frameobject.h>

/// Frames of Python calls in CPython's private layout, which differs between minor versions.
///
/// The layout comes from CPython's internal headers. CMake compiles this header at build time, and
/// sets MEMRT_CPYTHON_FRAMES to 0 if the compilation fails, as for versions of Python that the
/// header does not know. Call stacks then come from public functions, and frames show no
/// variables. An extension module loads only in the minor version of the build.

#ifndef MEMRT_CPYTHON_FRAMES
#define MEMRT_CPYTHON_FRAMES 1 /* the check of CMake */
#if PY_VERSION_HEX >= 0x03100000
#error "the frames of this version of Python are unknown"
#endif
#endif

#if MEMRT_CPYTHON_FRAMES && PY_VERSION_HEX >= 0x030B0000
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_interpframe.h>
#endif
#include <internal/pycore_frame.h>

/// Frame of a Python call, with or without a frame object.
typedef struct _PyInterpreterFrame memrt_inner_frame_t;

/// Return the innermost frame of a thread, which may be incomplete; NULL outside of Python calls.
static inline memrt_inner_frame_t *memrt__inner_frame_of(PyThreadState *thread)
{
#if PY_VERSION_HEX >= 0x030D0000
    return thread->current_frame;
#else
    return thread->cframe->current_frame;
#endif
}

/// Return the code of a complete frame, borrowed.
static inline PyCodeObject *memrt__inner_frame_code(memrt_inner_frame_t *frame)
{
#if PY_VERSION_HEX >= 0x030D0000
    return _PyFrame_GetCode(frame);
#else
    return frame->f_code;
#endif
}
#endif

/// Slot of a frame: a variable, or an operand of an expression in progress. Since Python 3.14 a
/// slot may borrow from another slot, also of a calling frame, that holds the object for longer.
#if MEMRT_CPYTHON_FRAMES && PY_VERSION_HEX >= 0x030E0000
typedef _PyStackRef memrt_slot_t;
#else
typedef PyObject *memrt_slot_t;
#endif

typedef struct memrt_slots {
    const memrt_slot_t *slots; ///< borrowed
    int variables;             ///< number of variables, the first slots
    int count;                 ///< number of known slots
    int is_traversed;          ///< whether a generator owns the slots, and visits all of them
} memrt_slots_t;

/// Return the object of a slot, borrowed; NULL for a slot without an object.
static inline PyObject *memrt__slot_object(memrt_slot_t slot)
{
#if MEMRT_CPYTHON_FRAMES && PY_VERSION_HEX >= 0x030E0000
    return PyStackRef_IsNull(slot) || PyStackRef_IsTaggedInt(slot)
               ? NULL
               : PyStackRef_AsPyObjectBorrow(slot);
#else
    return slot;
#endif
}

/// Return whether a slot borrows its object. Slots also borrow immortal objects.
static inline int memrt__slot_borrows(memrt_slot_t slot)
{
#if MEMRT_CPYTHON_FRAMES && PY_VERSION_HEX >= 0x030E0000
    return (slot.bits & Py_TAG_REFCNT) != 0;
#else
    (void)slot;
    return 0;
#endif
}

/// Whether the operands of frames that call into C are known: since Python 3.14 the interpreter
/// stores the end of the operands before each such call.
#define MEMRT_OPERANDS_ARE_KNOWN (MEMRT_CPYTHON_FRAMES && PY_VERSION_HEX >= 0x030E0000)

#if MEMRT_CPYTHON_FRAMES && PY_VERSION_HEX >= 0x030B0000
static inline memrt_slots_t memrt__inner_frame_slots(memrt_inner_frame_t *inner)
{
    int variables = memrt__inner_frame_code(inner)->co_nlocalsplus;
    int is_generators = inner->owner == FRAME_OWNED_BY_GENERATOR;
#if PY_VERSION_HEX < 0x030E0000
    /* stacktop is negative while the frame is calling into C. */
    return (memrt_slots_t){inner->localsplus, variables, Py_MAX(inner->stacktop, variables),
                           is_generators && inner->stacktop >= 0};
#else
    /* A frame without slots has ended. */
    int count = (int)(inner->stackpointer - inner->localsplus);
    return (memrt_slots_t){inner->localsplus, Py_MIN(count, variables), count, is_generators};
#endif
}
#endif

/// Return the slots of a frame; none if the layout is unknown. The slots move when the frame ends.
static inline memrt_slots_t memrt__frame_slots(PyFrameObject *frame)
{
#if !MEMRT_CPYTHON_FRAMES
    (void)frame;
    return (memrt_slots_t){NULL, 0, 0, 0};
#elif PY_VERSION_HEX < 0x030B0000
    PyCodeObject *code = frame->f_code;
    Py_ssize_t count = code->co_nlocals + PyTuple_GET_SIZE(code->co_cellvars) +
                       PyTuple_GET_SIZE(code->co_freevars);
    return (memrt_slots_t){frame->f_localsplus, (int)count, (int)count, 0};
#else
    return memrt__inner_frame_slots(frame->f_frame);
#endif
}

/// Return the slots of a generator, a coroutine or an asynchronous generator. Returns none for
/// other objects, and where no slot borrows.
static inline memrt_slots_t memrt__generator_slots(PyObject *object)
{
#if MEMRT_OPERANDS_ARE_KNOWN
    PyGenObject *generator = (PyGenObject *)object; /* all three types begin with these members */
    if ((PyGen_CheckExact(object) || PyCoro_CheckExact(object) || PyAsyncGen_CheckExact(object)) &&
        !FRAME_STATE_FINISHED(generator->gi_frame_state)) {
        return memrt__inner_frame_slots(&generator->gi_iframe);
    }
#else
    (void)object;
#endif
    return (memrt_slots_t){NULL, 0, 0, 0};
}

#endif
