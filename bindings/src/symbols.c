#include "symbols.h"

#include "errors.h"
#include "owner.h"

static void raise_unresolved(const char *name)
{
    if (name == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "compiled code called a symbol that is not defined: "
                                            "memrt.unresolved_symbols() lists them");
    } else {
        PyErr_Format(PyExc_RuntimeError, "compiled code called the symbol %s, which is not defined",
                     name);
    }
}

/// Without the GIL the error stays with memrt, until check_symbols() or C code asks for it.
static int tell(const char *name)
{
    if (!memrt__holds_python()) {
        return 0;
    }
    if (PyErr_Occurred() == NULL) {
        raise_unresolved(name);
    }
    return 1;
}

void memrt__symbols_setup(void)
{
    memrt__api()->set_symbol_error(tell);
}

static PyObject *check_symbols(PyObject *module, PyObject *unused)
{
    const char *name;
    (void)module;
    (void)unused;
    if (memrt__api()->symbol_error(&name) == MEMRT_OK) {
        Py_RETURN_NONE;
    }
    raise_unresolved(name);
    return NULL;
}

static PyObject *list_of_names(const char *const *names, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *name = PyUnicode_DecodeUTF8(names[i], (Py_ssize_t)strlen(names[i]), "replace");
        if (name == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, (Py_ssize_t)i, name);
        }
    }
    return list;
}

static PyObject *unresolved_symbols(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    size_t room = memrt__api()->symbols_unresolved(NULL, 0);
    const char **names = PyMem_Calloc(room + 1, sizeof(*names));
    if (names == NULL) {
        return PyErr_NoMemory();
    }
    size_t count = memrt__api()->symbols_unresolved(names, room); /* there may be more by now */
    PyObject *list = list_of_names(names, Py_MIN(count, room));
    PyMem_Free((void *)names);
    return list;
}

PyMethodDef memrt__symbols_methods[] = {
    {"unresolved_symbols", unresolved_symbols, METH_NOARGS,
     "unresolved_symbols() -> list[str]\n\n"
     "The symbols that compiled code calls through a slot and nobody has defined, oldest first."},
    {"check_symbols", check_symbols, METH_NOARGS,
     "check_symbols() -> None\n\n"
     "Raise RuntimeError when compiled code on this thread has called a symbol that is not\n"
     "defined, and forget it. To call after code that runs without the GIL; with the GIL the\n"
     "exception is there by itself."},
    {NULL, NULL, 0, NULL},
};
