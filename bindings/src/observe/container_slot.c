/// Find positions of objects in containers by identity. Searches hash and compare nothing, so they
/// run no Python code.

#include "observe/container_slot.h"

#include <stdlib.h>

#include "support/free_threading.h"
#include "support/ndarray.h"

/// Return ("value", key) or ("key", key) for an object in a dict, or None.
static PyObject *find_dict_slot(PyObject *dict, PyObject *object)
{
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(dict, &position, &key, &value)) {
        if (value == object || key == object) {
            const char *kind = value == object ? "value" : "key";
            /* An allocation may run the collector, so the reference is taken first. */
            return Py_BuildValue("(sN)", kind, Py_NewRef(key));
        }
    }
    Py_RETURN_NONE;
}

/// Return ("index", i) for an object among items, or None.
static PyObject *find_item_slot(PyObject *const *items, Py_ssize_t count, PyObject *object)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        if (items[i] == object) {
            return Py_BuildValue("(sn)", "index", i);
        }
    }
    Py_RETURN_NONE;
}

/// Return ("index", i) for an object in an object array that owns its elements, or None.
static PyObject *find_array_slot(PyArrayObject *array, PyObject *object)
{
    if (PyArray_TYPE(array) != NPY_OBJECT || !PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA)) {
        Py_RETURN_NONE;
    }
    return find_item_slot(PyArray_DATA(array), PyArray_SIZE(array), object);
}

/* --- Positions of several objects, in one pass over a container. --- */

/// An object to search for.
typedef struct target {
    PyObject *object; ///< borrowed from the caller's list
    Py_ssize_t row;   ///< index in the caller's list
    const char *kind; ///< NULL: not found
    PyObject *key;    ///< key in a dict; owned
    Py_ssize_t index; ///< index in a sequence
} target_t;

static int compare_objects(const void *a, const void *b)
{
    uintptr_t left = (uintptr_t)((const target_t *)a)->object;
    uintptr_t right = (uintptr_t)((const target_t *)b)->object;
    return (left > right) - (left < right);
}

static target_t *find_target(target_t *rows, Py_ssize_t count, PyObject *object)
{
    target_t key = {.object = object};
    return bsearch(&key, rows, (size_t)count, sizeof(*rows), compare_objects);
}

static void store_key(target_t *row, const char *kind, PyObject *key)
{
    if (row != NULL && row->kind == NULL) {
        row->kind = kind;
        row->key = Py_NewRef(key);
    }
}

/// Search a dict. Allocates nothing, so the collector cannot run and change the container.
static void search_dict(PyObject *dict, target_t *rows, Py_ssize_t count)
{
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(dict, &position, &key, &value)) {
        store_key(find_target(rows, count, value), "value", key);
        store_key(find_target(rows, count, key), "key", key);
    }
}

static void search_items(PyObject *const *items, Py_ssize_t length, target_t *rows,
                         Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < length; i++) {
        target_t *row = find_target(rows, count, items[i]);
        if (row != NULL && row->kind == NULL) {
            row->kind = "index";
            row->index = i;
        }
    }
}

static void search_container(PyObject *container, target_t *rows, Py_ssize_t count)
{
    if (PyDict_Check(container)) {
        search_dict(container, rows, count);
    } else if (PyList_Check(container) || PyTuple_Check(container)) {
        search_items(PySequence_Fast_ITEMS(container), PySequence_Fast_GET_SIZE(container), rows,
                     count);
    }
}

static PyObject *build_slot(const target_t *row)
{
    if (row->kind == NULL) {
        Py_RETURN_NONE;
    }
    return row->key != NULL ? Py_BuildValue("(sO)", row->kind, row->key)
                            : Py_BuildValue("(sn)", row->kind, row->index);
}

/// Return the positions of all objects, in the order of the caller's list.
static PyObject *build_slots(const target_t *rows, Py_ssize_t count)
{
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        PyObject *slot = build_slot(&rows[i]);
        if (slot == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, rows[i].row, slot);
        }
    }
    return list;
}

static PyObject *find_slots(PyObject *module, PyObject *args)
{
    PyObject *container, *objects;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO!:find_places", &container, &PyList_Type, &objects)) {
        return NULL;
    }
    Py_ssize_t count = PyList_GET_SIZE(objects);
    target_t *rows = PyMem_RawCalloc((size_t)count + 1, sizeof(*rows));
    if (rows == NULL) {
        return PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        rows[i] = (target_t){.object = PyList_GET_ITEM(objects, i), .row = i};
    }
    qsort(rows, (size_t)count, sizeof(*rows), compare_objects);
    MEMRT_BEGIN_CRITICAL_SECTION(container);
    search_container(container, rows, count);
    MEMRT_END_CRITICAL_SECTION();
    PyObject *slots = build_slots(rows, count);
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_XDECREF(rows[i].key);
    }
    PyMem_RawFree(rows);
    return slots;
}

static PyObject *find_container_slot(PyObject *container, PyObject *object)
{
    if (PyDict_Check(container)) {
        return find_dict_slot(container, object);
    }
    if (PyArray_Check(container)) {
        return find_array_slot((PyArrayObject *)container, object);
    }
    if (PyList_Check(container) || PyTuple_Check(container)) {
        return find_item_slot(PySequence_Fast_ITEMS(container), PySequence_Fast_GET_SIZE(container),
                              object);
    }
    Py_RETURN_NONE;
}

static PyObject *find_slot(PyObject *module, PyObject *args)
{
    PyObject *container, *object, *slot;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:find_place", &container, &object)) {
        return NULL;
    }
    MEMRT_BEGIN_CRITICAL_SECTION(container);
    slot = find_container_slot(container, object);
    MEMRT_END_CRITICAL_SECTION();
    return slot;
}

static PyObject *get_instance_dict(PyObject *module, PyObject *object)
{
    (void)module;
    PyObject *dict = PyObject_GenericGetDict(object, NULL);
    if (dict != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError)) {
        return dict;
    }
    PyErr_Clear();
    Py_RETURN_NONE;
}

PyMethodDef memrt__container_methods[] = {
    {"find_place", find_slot, METH_VARARGS,
     "find_place(container, object) -> tuple or None\n\n"
     "Find an object by identity: ('value', key) or ('key', key) in a dict, ('index', i) in a\n"
     "list, a tuple, or an array that owns the elements. Calls no hash and no comparison."},
    {"find_places", find_slots, METH_VARARGS,
     "find_places(container, objects) -> list\n\n"
     "Find each object of a list as find_place() does, in one pass over a dict, list or tuple."},
    {"instance_dict", get_instance_dict, METH_O,
     "instance_dict(object) -> dict or None\n\n"
     "Return the attribute dict of an object, even if the class overrides __dict__."},
    {NULL, NULL, 0, NULL},
};
