#include "shortage.h"

#include <stddef.h>
#include <stdio.h>
#include <structmember.h>

typedef struct shortage {
    PyBaseExceptionObject base;
    Py_ssize_t nbytes; ///< asked for; 0: not of a size
    char text[4096];   ///< "" for one that was made by hand, with arguments
} shortage_t;

static PyObject *type;
static shortage_t *ready; ///< under the GIL; NULL: there was no memory for another one

/// One more for the next time, if there is memory.
static void make_ready(void)
{
    if (ready == NULL) {
        ready = (shortage_t *)PyObject_CallNoArgs(type);
        if (ready == NULL) {
            PyErr_Clear();
            return;
        }
        PyObject_GC_UnTrack(ready); /* gc.freeze() would keep it, and what it comes to hold */
    }
}

static PyObject *text_of(PyObject *self)
{
    const char *text = ((shortage_t *)self)->text;
    if (text[0] == '\0') {
        return ((PyTypeObject *)PyExc_MemoryError)->tp_str(self);
    }
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace"); /* it may be cut */
}

/// For pickle and copy: the text becomes the argument.
static PyObject *reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *text = text_of(self);
    return text == NULL ? NULL : Py_BuildValue("(O(N))", Py_TYPE(self), text);
}

static PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"nbytes", T_PYSSIZET, offsetof(shortage_t, nbytes), READONLY,
     "Bytes that were asked for; 0 where no size was."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     (void
          *)(uintptr_t)"Memory was refused. The text tells the request, what is live and kept for\n"
                       "reuse, the limits of the system, the places of birth that hold most where\n"
                       "births were tracked, and the largest buffers with a name. Raising it\n"
                       "allocates nothing."},
    {Py_tp_str, text_of},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "memrt.OutOfMemoryError",
    .basicsize = sizeof(shortage_t),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int memrt__shortage_setup(PyObject *module)
{
    type = PyType_FromSpecWithBases(&spec, PyExc_MemoryError);
    if (type == NULL || PyModule_AddObjectRef(module, "OutOfMemoryError", type) < 0) {
        return -1;
    }
    make_ready();
    return 0;
}

PyObject *memrt__raise_shortage(const memrt_policy_t *policy, size_t size, const char *what)
{
    make_ready();
    shortage_t *error = ready;
    if (error == NULL) {
        return PyErr_NoMemory();
    }
    ready = NULL;
    make_ready(); /* while nothing is raised yet */
    size_t used = 0;
    if (what != NULL) {
        used = (size_t)snprintf(error->text, sizeof(error->text) / 2, "%s\n", what);
        used = Py_MIN(used, sizeof(error->text) / 2 - 1);
    }
    memrt__api()->explain_shortage(policy, size, error->text + used, sizeof(error->text) - used);
    error->nbytes = (Py_ssize_t)Py_MIN(size, (size_t)PY_SSIZE_T_MAX);
    size_t length = strlen(error->text);
    if (error->text[length - 1] == '\n') {
        error->text[length - 1] = '\0';
    }
    PyObject_GC_Track(error);
    PyErr_SetObject(type, (PyObject *)error);
    Py_DECREF(error);
    return NULL;
}
