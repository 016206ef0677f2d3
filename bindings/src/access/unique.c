#include "access/unique.h"

#include "core/cpython_frame.h"
#include "core/meminfo_object.h"
#include "observe/base_chain.h"
#include "support/ndarray.h"

#if !MEMRT_OPERANDS_ARE_KNOWN
/// Return the end of the slots that a frame has room for.
static const memrt_slot_t *get_slots_end(PyFrameObject *frame, const memrt_slots_t *slots)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    const memrt_slot_t *end =
        slots->slots == NULL ? NULL : slots->slots + slots->variables + code->co_stacksize;
    Py_DECREF(code);
    return end;
}
#endif

/// Return whether the argument of a call is an operand of the calling frame with a reference of its
/// own, which ends with the call.
static int is_counted_operand(PyFrameObject *frame, const memrt_slots_t *slots,
                              PyObject *const *args)
{
#if MEMRT_OPERANDS_ARE_KNOWN
    const memrt_slot_t *last = slots->slots + slots->count - 1; /* the only argument */
    (void)frame;
    return slots->count > slots->variables && memrt__slot_object(*last) == args[0] &&
           !memrt__slot_borrows(*last);
#else
    return (uintptr_t)args >= (uintptr_t)slots->slots &&
           (uintptr_t)args < (uintptr_t)get_slots_end(frame, slots);
#endif
}

/// Count the references to an object that variables of a frame hold. Variables of closures hold a
/// cell instead.
static Py_ssize_t count_variables(const memrt_slots_t *slots, const PyObject *object)
{
    Py_ssize_t count = 0;
    for (int i = 0; i < slots->variables; i++) {
        count +=
            memrt__slot_object(slots->slots[i]) == object && !memrt__slot_borrows(slots->slots[i]);
    }
    return count;
}

/// Return whether the count of an object is exact: without a GIL, only for objects of the thread.
static int count_is_exact(PyObject *object)
{
#ifdef Py_GIL_DISABLED
    return object->ob_tid == _Py_ThreadId();
#else
    (void)object;
    return 1;
#endif
}

static int has_weak_references(PyObject *object)
{
    Py_ssize_t offset = Py_TYPE(object)->tp_weaklistoffset;
    return offset > 0 && *(PyObject **)(void *)((char *)object + offset) != NULL;
}

/// Return whether an object has `count` references, and none can be made from a weak reference.
static int has_references(PyObject *object, Py_ssize_t count)
{
    return count_is_exact(object) && Py_REFCNT(object) == count && !has_weak_references(object);
}

/// Return whether only the calling frame refers to an argument: by the operand of the call, and by
/// at most one variable.
static int is_callers_alone(PyObject *const *args)
{
    PyFrameObject *frame = PyEval_GetFrame();
    if (frame == NULL) { /* GCOV_EXCL_BR_LINE: tests call from Python */
        return 0;
    }
    memrt_slots_t slots = memrt__frame_slots(frame);
    Py_ssize_t variables = count_variables(&slots, args[0]);
    return variables <= 1 &&
           has_references(args[0], variables + is_counted_operand(frame, &slots, args));
}

/// Return whether a block that NumPy frees has no other holder than its array.
static int is_unique_block(PyArrayObject *array)
{
    const memrt_api_t *api = memrt__api();
    memrt_location_t found = {.struct_size = sizeof(found)};
    memrt_meminfo_t *mi = memrt__link_meminfo((PyObject *)array);
    if (mi == NULL) { /* a tiny block, which may lack a MemInfo */
        /* GCOV_EXCL_BR_START: only a sandbox refuses the reads of the search */
        if (api->locate(PyArray_DATA(array), &found) != MEMRT_OK) {
            return 0;
        }
        /* GCOV_EXCL_BR_STOP */
        mi = (memrt_meminfo_t *)found.meminfo;
    }
    return mi == NULL || api->try_unique(mi);
}

/// Return whether the MemInfo of a link has no other holder. The owner of adopted memory may know
/// the address.
static int is_unique_meminfo(PyObject *link)
{
    memrt_meminfo_t *mi = memrt__link_meminfo(link);
    /* GCOV_EXCL_BR_START: only the collector sees a MemInfo without memory */
    if (mi == NULL) {
        return 0;
    }
    /* GCOV_EXCL_BR_STOP */
    return mi->kind != MEMRT_KIND_ADOPTED && memrt__api()->try_unique(mi);
}

/// Return whether the last link of a base chain alone holds its memory.
static int holds_memory_alone(PyObject *link)
{
    switch (memrt__link_of(link)) {
    case MEMRT_LINK_ARRAY:
        return PyArray_CHKFLAGS((PyArrayObject *)link, NPY_ARRAY_OWNDATA);
    case MEMRT_LINK_BLOCK:
        return is_unique_block((PyArrayObject *)link);
    default:
        return is_unique_meminfo(link);
    }
}

/// Return whether each link of the base chain has the previous link as its only holder.
static int has_unique_memory(PyObject *link)
{
    PyObject *next = memrt__link_next(link);
    /* GCOV_EXCL_BR_START: no test makes a chain of MEMRT__LINKS_MAX links */
    for (int links = 0; next != NULL && links < MEMRT__LINKS_MAX; links++) {
        /* GCOV_EXCL_BR_STOP */
        if (!has_references(next, 1) || memrt__link_of(next) == MEMRT_LINK_NONE) {
            return 0;
        }
        link = next;
        next = memrt__link_next(link);
    }
    return next == NULL && holds_memory_alone(link); /* GCOV_EXCL_BR_LINE: as above */
}

static PyObject *is_unique(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 1) {
        return PyErr_Format(PyExc_TypeError, "is_unique() takes 1 argument, got %zd", count);
    }
    if (!PyArray_Check(args[0]) && !memrt__meminfo_check(args[0])) {
        return PyErr_Format(PyExc_TypeError,
                            "array must be a numpy.ndarray or a memrt.MemInfo, got %.200s",
                            Py_TYPE(args[0])->tp_name);
    }
    return PyBool_FromLong(is_callers_alone(args) && has_unique_memory(args[0]));
}

PyDoc_STRVAR(
    is_unique_doc,
    "is_unique($module, array, /)\n"
    "--\n"
    "\n"
    "Return whether the calling function holds the only reference to an array and its memory.\n"
    "\n"
    "The function may then overwrite the array in place instead of making a new one, as NumPy\n"
    "does with the temporaries of an expression.\n"
    "\n"
    "Parameters\n"
    "----------\n"
    "array : numpy.ndarray or memrt.MemInfo\n"
    "    Value of a local variable, or of an expression. Borrowed.\n"
    "\n"
    "Returns\n"
    "-------\n"
    "bool\n"
    "    True: at most one variable of the calling function refers to the array, and nothing "
    "else.\n"
    "    No other object, and no C code that counts its references, has the memory. False: a "
    "proof\n"
    "    is not possible.\n"
    "\n"
    "Raises\n"
    "------\n"
    "TypeError\n"
    "    The argument is neither an array nor a MemInfo.\n"
    "\n"
    "Notes\n"
    "-----\n"
    "The result is False for an array with another variable, a container, an attribute, a view,\n"
    "a buffer or a weak reference; for a global variable and a variable of a closure; for adopted\n"
    "memory, and memory with a weak handle; and in calls through other C code, for example\n"
    "``map(is_unique, arrays)``. The array may be read-only: see ``array.flags.writeable``.\n"
    "\n"
    "In Python 3.10, the caller of a function keeps a reference to each argument, so that an\n"
    "argument is never unique. The result is always False where memrt does not know the frames\n"
    "of the interpreter, as for versions of Python later than memrt. In CPython without a GIL,\n"
    "the calling thread must have made the array.\n"
    "\n"
    "Threads: the proof holds until the function shares the array.\n"
    "\n"
    "Examples\n"
    "--------\n"
    ">>> import memrt\n"
    ">>> import numpy as np\n"
    ">>> def double(array):\n"
    "...     out = array if memrt.debug.is_unique(array) else np.empty_like(array)\n"
    "...     return np.multiply(array, 2, out=out)\n"
    ">>> kept = np.arange(100.0)\n"
    ">>> doubled = double(kept)        # `kept` stays unchanged\n"
    ">>> tripled = double(kept + 0.5)  # from Python 3.11 on, overwrites the sum\n"
    ">>> float(kept[1]), float(doubled[1]), float(tripled[1])\n"
    "(1.0, 2.0, 3.0)");

PyMethodDef memrt__unique_methods[] = {
    {"is_unique", (PyCFunction)(void (*)(void))is_unique, METH_FASTCALL, is_unique_doc},
    {NULL, NULL, 0, NULL},
};
