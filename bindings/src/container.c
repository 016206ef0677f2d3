#include "container.h"

#include "ndarray.h"

static PyObject *place_in_dict(PyObject *dict, PyObject *object)
{
    PyObject *key, *value;
    Py_ssize_t place = 0;
    while (PyDict_Next(dict, &place, &key, &value)) {
        if (value == object || key == object) {
            return Py_BuildValue("(sO)", value == object ? "value" : "key", key);
        }
    }
    Py_RETURN_NONE;
}

static PyObject *place_among(PyObject *const *items, Py_ssize_t count, PyObject *object)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        if (items[i] == object) {
            return Py_BuildValue("(sn)", "index", i);
        }
    }
    Py_RETURN_NONE;
}

static PyObject *place_in_array(PyArrayObject *array, PyObject *object)
{
    if (PyArray_TYPE(array) != NPY_OBJECT || !PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA)) {
        Py_RETURN_NONE;
    }
    return place_among(PyArray_DATA(array), PyArray_SIZE(array), object);
}

static PyObject *find_place(PyObject *module, PyObject *args)
{
    PyObject *container, *object;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:find_place", &container, &object)) {
        return NULL;
    }
    if (PyDict_Check(container)) {
        return place_in_dict(container, object);
    }
    if (PyArray_Check(container)) {
        return place_in_array((PyArrayObject *)container, object);
    }
    if (PyList_Check(container) || PyTuple_Check(container)) {
        return place_among(PySequence_Fast_ITEMS(container), PySequence_Fast_GET_SIZE(container),
                           object);
    }
    Py_RETURN_NONE;
}

static PyObject *instance_dict(PyObject *module, PyObject *object)
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
    {"find_place", find_place, METH_VARARGS,
     "find_place(container, object) -> tuple or None\n\n"
     "Where an object is in a dict, ('value', key) or ('key', key), or in a list, tuple or array\n"
     "that owns its elements, ('index', i). Nothing is hashed or compared."},
    {"instance_dict", instance_dict, METH_O,
     "instance_dict(object) -> dict or None\n\nThe attributes of an object, whatever its class "
     "says."},
    {NULL, NULL, 0, NULL},
};
