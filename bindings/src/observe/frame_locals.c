#include "observe/frame_locals.h"

#include "core/cpython_frame.h"

const int memrt__frame_shows_operands = MEMRT_OPERANDS_ARE_KNOWN;

/// Visit the objects of all slots that do not borrow.
static int visit_slots(const memrt_slots_t *slots, visitproc visit, void *arg)
{
    for (int i = 0; i < slots->count; i++) {
        if (!memrt__slot_borrows(slots->slots[i])) {
            Py_VISIT(memrt__slot_object(slots->slots[i]));
        }
    }
    return 0;
}

int memrt__frame_visit(PyFrameObject *frame, visitproc visit, void *arg)
{
    memrt_slots_t slots = memrt__frame_slots(frame);
    return slots.is_traversed ? 0 : visit_slots(&slots, visit, arg);
}

typedef struct traversal {
    memrt_slots_t slots;
    visitproc visit;
    void *arg;
} traversal_t;

/// Visit an object, unless a slot has the object. Callback of tp_traverse.
static int visit_if_in_no_slot(PyObject *object, void *context)
{
    const traversal_t *traversal = context;
    for (int i = 0; i < traversal->slots.count; i++) {
        if (memrt__slot_object(traversal->slots.slots[i]) == object) {
            return 0;
        }
    }
    return traversal->visit(object, traversal->arg);
}

int memrt__object_traverse(PyObject *object, visitproc visit, void *arg)
{
    traversal_t traversal = {memrt__generator_slots(object), visit, arg};
    traverseproc traverse = Py_TYPE(object)->tp_traverse;
    if (traversal.slots.count == 0) {
        return traverse(object, visit, arg);
    }
    int result = visit_slots(&traversal.slots, visit, arg);
    return result != 0 ? result : traverse(object, visit_if_in_no_slot, &traversal);
}

static PyObject *get_variable_name(PyCodeObject *code, int index)
{
#if PY_VERSION_HEX >= 0x030B0000
    return PyTuple_GET_ITEM(code->co_localsplusnames, index);
#else
    /* Local variables come first, then cells of inner functions, then cells of outer functions. */
    PyObject *groups[] = {code->co_varnames, code->co_cellvars, code->co_freevars};
    Py_ssize_t position = index;
    for (int i = 0; i < 2; i++) {
        Py_ssize_t size = i == 0 ? code->co_nlocals : PyTuple_GET_SIZE(groups[i]);
        if (position < size) {
            return PyTuple_GET_ITEM(groups[i], position);
        }
        position -= size;
    }
    return PyTuple_GET_ITEM(groups[2], position);
#endif
}

static int append_pair(PyObject *list, PyObject *name, PyObject *value)
{
    PyObject *pair = PyTuple_Pack(2, name, value);
    int result = pair != NULL ? PyList_Append(list, pair) : -1;
    Py_XDECREF(pair);
    return result;
}

/// Return a new reference to the value of a variable, or NULL for a variable without a value. The
/// slots are read anew for each variable: an allocation may run the collector, and the end of the
/// frame moves the slots.
static PyObject *get_variable_value(PyFrameObject *frame, int index)
{
    memrt_slots_t slots = memrt__frame_slots(frame);
    return index < slots.variables ? Py_XNewRef(memrt__slot_object(slots.slots[index])) : NULL;
}

PyObject *memrt__frame_locals(PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    int count = memrt__frame_slots(frame).variables;
    PyObject *list = PyList_New(0);
    for (int i = 0; list != NULL && i < count; i++) {
        PyObject *value = get_variable_value(frame, i);
        if (value != NULL && append_pair(list, get_variable_name(code, i), value) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(value);
    }
    Py_DECREF(code);
    return list;
}
