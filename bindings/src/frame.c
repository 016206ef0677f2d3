#include "frame.h"

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030E0000
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include <internal/pycore_frame.h>
#endif

/// Where the variables of a frame lie.
typedef struct variables {
    PyCodeObject *code; ///< a reference
    PyObject **values;  ///< borrowed
    int count;          ///< of variables
    int top;            ///< values up to there are known; behind the variables, of expressions
} variables_t;

#if PY_VERSION_HEX < 0x030B0000

static variables_t variables_of(PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    Py_ssize_t count = code->co_nlocals + PyTuple_GET_SIZE(code->co_cellvars) +
                       PyTuple_GET_SIZE(code->co_freevars);
    return (variables_t){code, frame->f_localsplus, (int)count, (int)count};
}

/// Plain variables come first, then the cells of inner functions, then those of outer ones.
static PyObject *name_at(PyCodeObject *code, int index)
{
    PyObject *groups[] = {code->co_varnames, code->co_cellvars, code->co_freevars};
    Py_ssize_t place = index;
    for (int i = 0; i < 2; i++) {
        Py_ssize_t size = i == 0 ? code->co_nlocals : PyTuple_GET_SIZE(groups[i]);
        if (place < size) {
            return PyTuple_GET_ITEM(groups[i], place);
        }
        place -= size;
    }
    return PyTuple_GET_ITEM(groups[2], place);
}

#elif PY_VERSION_HEX < 0x030E0000

static variables_t variables_of(PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    struct _PyInterpreterFrame *inner = frame->f_frame;
    int count = code->co_nlocalsplus;
    /* A frame that called into C has not said how far its expressions are. */
    int top = inner->stacktop > count ? inner->stacktop : count;
    return (variables_t){code, inner->localsplus, count, top};
}

static PyObject *name_at(PyCodeObject *code, int index)
{
    return PyTuple_GET_ITEM(code->co_localsplusnames, index);
}

#else

/// Frames of Python 3.14 and later cannot be seen into: what is in them stays unexplained.
static variables_t variables_of(PyFrameObject *frame)
{
    return (variables_t){PyFrame_GetCode(frame), NULL, 0, 0};
}

static PyObject *name_at(PyCodeObject *code, int index)
{
    (void)index;
    return code->co_name;
}

#endif

/// A generator visits the variables of its frame itself, also while it runs, where they are known.
static int is_visited_by_generator(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030E0000
    return frame->f_frame->owner == FRAME_OWNED_BY_GENERATOR && frame->f_frame->stacktop >= 0;
#else
    (void)frame;
    return 0;
#endif
}

static int visit_all(const variables_t *variables, visitproc visit, void *arg)
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
    variables_t variables = variables_of(frame);
    int result = visit_all(&variables, visit, arg);
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

PyObject *memrt__frame_variables(PyFrameObject *frame)
{
    variables_t variables = variables_of(frame);
    PyObject *list = PyList_New(0);
    for (int i = 0; list != NULL && i < variables.count; i++) {
        if (variables.values[i] != NULL &&
            append_pair(list, name_at(variables.code, i), variables.values[i]) < 0) {
            Py_CLEAR(list);
        }
    }
    Py_DECREF(variables.code);
    return list;
}
