/// Read variables directly from the interpreter's frame structs, whose layout depends on the
/// version of Python.

#include "observe/frame_locals.h"

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030E0000
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include <internal/pycore_frame.h>
#endif

/// Location of the variables of a frame.
typedef struct variables {
    PyCodeObject *code; ///< a reference
    PyObject **values;  ///< borrowed
    int count;          ///< number of variables
    int top;            ///< number of known values: the variables, then operands of expressions
} variables_t;

#if PY_VERSION_HEX < 0x030B0000

static variables_t get_variables(PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    Py_ssize_t count = code->co_nlocals + PyTuple_GET_SIZE(code->co_cellvars) +
                       PyTuple_GET_SIZE(code->co_freevars);
    return (variables_t){code, frame->f_localsplus, (int)count, (int)count};
}

/// Return the name of a variable. Local variables come first, then cells of inner functions, then
/// cells of outer functions.
static PyObject *get_variable_name(PyCodeObject *code, int index)
{
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
}

#elif PY_VERSION_HEX < 0x030E0000

static variables_t get_variables(PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    struct _PyInterpreterFrame *inner = frame->f_frame;
    int count = code->co_nlocalsplus;
    /* stacktop is not set while the frame is calling into C. */
    int top = inner->stacktop > count ? inner->stacktop : count;
    return (variables_t){code, inner->localsplus, count, top};
}

static PyObject *get_variable_name(PyCodeObject *code, int index)
{
    return PyTuple_GET_ITEM(code->co_localsplusnames, index);
}

#else

/// Return no variables: frames of Python 3.14 and later are not readable, so references from them
/// stay unexplained.
static variables_t get_variables(PyFrameObject *frame)
{
    return (variables_t){PyFrame_GetCode(frame), NULL, 0, 0};
}

static PyObject *get_variable_name(PyCodeObject *code, int index)
{
    (void)index;
    return code->co_name;
}

#endif

/// Return whether a generator visits the variables of the frame. A generator does so whenever the
/// interpreter has set stacktop.
static int is_visited_by_generator(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030E0000
    return frame->f_frame->owner == FRAME_OWNED_BY_GENERATOR && frame->f_frame->stacktop >= 0;
#else
    (void)frame;
    return 0;
#endif
}

static int visit_values(const variables_t *variables, visitproc visit, void *arg)
{
    for (int i = 0; i < variables->top; i++) {
        Py_VISIT(variables->values[i]);
    }
    return 0;
}

int memrt__frame_visit(PyFrameObject *frame, visitproc visit, void *arg)
{
    if (is_visited_by_generator(frame)) {
        return 0;
    }
    variables_t variables = get_variables(frame);
    int result = visit_values(&variables, visit, arg);
    Py_DECREF(variables.code); /* the frame has another reference */
    return result;
}

static int append_pair(PyObject *list, PyObject *name, PyObject *value)
{
    PyObject *pair = PyTuple_Pack(2, name, value);
    int result = pair != NULL ? PyList_Append(list, pair) : -1;
    Py_XDECREF(pair);
    return result;
}

/// A reference to the value of a variable; NULL: it has none. An allocation may run the collector,
/// after which the frame may have ended and its variables be elsewhere: they are looked up anew for
/// each.
static PyObject *get_variable_value(PyFrameObject *frame, int index)
{
    variables_t variables = get_variables(frame);
    PyObject *value = Py_XNewRef(variables.values[index]);
    Py_DECREF(variables.code); /* the frame has another reference */
    return value;
}

PyObject *memrt__frame_locals(PyFrameObject *frame)
{
    variables_t variables = get_variables(frame);
    PyObject *list = PyList_New(0);
    for (int i = 0; list != NULL && i < variables.count; i++) {
        PyObject *value = get_variable_value(frame, i);
        if (value != NULL && append_pair(list, get_variable_name(variables.code, i), value) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(value);
    }
    Py_DECREF(variables.code);
    return list;
}
