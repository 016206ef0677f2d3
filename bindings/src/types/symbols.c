#include "types/symbols.h"

#include "core/interpreter.h"
#include "support/errors.h"

static void raise_unresolved_symbol(const char *name)
{
    if (name == NULL) {
        PyErr_SetString(
            PyExc_RuntimeError,
            "compiled code called an undefined symbol: see memrt.debug.unresolved_symbols()");
    } else {
        PyErr_Format(PyExc_RuntimeError, "compiled code called the undefined symbol %s", name);
    }
}

/// Report a call of an undefined symbol. Returns whether an exception is pending. Without the GIL
/// the error stays in memrt until check_symbols() or C code reads it.
static int report_unresolved_call(const char *name)
{
    if (!memrt__holds_python()) {
        return 0;
    }
    if (PyErr_Occurred() == NULL) {
        raise_unresolved_symbol(name);
    }
    return 1;
}

void memrt__symbols_setup(void)
{
    memrt__api()->set_symbol_error(report_unresolved_call);
}

static PyObject *check_symbols(PyObject *module, PyObject *unused)
{
    const char *name;
    (void)module;
    (void)unused;
    if (memrt__api()->symbol_error(&name) == MEMRT_OK) {
        Py_RETURN_NONE;
    }
    raise_unresolved_symbol(name);
    return NULL;
}

static PyObject *build_name_list(const char *const *names, size_t count)
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

static PyObject *list_unresolved_symbols(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    size_t capacity = memrt__api()->symbols_unresolved(NULL, 0);
    const char **names = PyMem_Calloc(capacity + 1, sizeof(*names));
    if (names == NULL) {
        return PyErr_NoMemory();
    }
    size_t count =
        memrt__api()->symbols_unresolved(names, capacity); /* the number may have grown */
    PyObject *list = build_name_list(names, Py_MIN(count, capacity));
    PyMem_Free((void *)names);
    return list;
}

PyDoc_STRVAR(unresolved_doc,
             "unresolved_symbols()\n"
             "--\n"
             "\n"
             "Return the undefined symbols that compiled code refers to.\n"
             "\n"
             "Returns\n"
             "-------\n"
             "list of str\n"
             "    Names of symbols that compiled code calls through a slot, oldest first.\n"
             "\n"
             "Examples\n"
             "--------\n"
             ">>> import memrt\n"
             ">>> \"malloc\" in memrt.debug.unresolved_symbols()\n"
             "False");

PyDoc_STRVAR(
    check_doc,
    "check_symbols()\n"
    "--\n"
    "\n"
    "Raise an exception if compiled code on this thread has called an undefined symbol.\n"
    "\n"
    "Raises\n"
    "------\n"
    "RuntimeError\n"
    "    Compiled code without the GIL has called an undefined symbol. The error is cleared.\n"
    "\n"
    "Notes\n"
    "-----\n"
    "Call check_symbols() after code that runs without the GIL. In code with the GIL, the\n"
    "call of the symbol raises the exception.\n"
    "\n"
    "Examples\n"
    "--------\n"
    ">>> import memrt\n"
    ">>> memrt.debug.check_symbols()");

PyMethodDef memrt__symbols_methods[] = {
    {"unresolved_symbols", list_unresolved_symbols, METH_NOARGS, unresolved_doc},
    {"check_symbols", check_symbols, METH_NOARGS, check_doc},
    {NULL, NULL, 0, NULL},
};
