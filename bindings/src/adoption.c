#include "adoption.h"

#include <stdlib.h>

#include "errors.h"
#include "handler.h"
#include "lookup.h"
#include "meminfo.h"
#include "ndarray.h"
#include "owner.h"

/// The array that owns the memory of `array`, which may be itself; NULL when no array does.
static PyArrayObject *owning_array(PyArrayObject *array)
{
    while (!PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA)) {
        PyObject *base = PyArray_BASE(array);
        if (base == NULL || !PyArray_Check(base)) {
            return NULL;
        }
        array = (PyArrayObject *)base;
    }
    return array;
}

/// Ownership can move only if NumPy has nothing else to do at the end than to free the data.
static int can_move(PyArrayObject *array)
{
    return array != NULL && PyArray_BASE(array) == NULL &&
           !memrt_descr_has_references(PyArray_DESCR(array));
}

/// What NumPy does with the data of an array that has no handler.
static void free_by_libc(void *data, size_t size, void *info)
{
    (void)size;
    (void)info;
    free(data);
}

/// An array like `array` over the same data, to own the data in its place; it does not yet.
static PyArrayObject *donor_for(PyArrayObject *array)
{
    Py_INCREF(PyArray_DESCR(array));
    return (PyArrayObject *)PyArray_NewFromDescr(
        &PyArray_Type, PyArray_DESCR(array), PyArray_NDIM(array), PyArray_DIMS(array),
        PyArray_STRIDES(array), PyArray_DATA(array), NPY_ARRAY_WRITEABLE, NULL);
}

/// The owner of memory that a handler made: a donor array, whose end runs that handler. -1 with an
/// exception.
static int donor_options(PyArrayObject *array, memrt_new_options_t *options, PyArrayObject **donor)
{
    *donor = donor_for(array);
    if (*donor == NULL) {
        return -1;
    }
    options->dtor = memrt__owner_dtor;
    options->dtor_info = memrt__owner_new((PyObject *)*donor, NULL, 0, 0);
    Py_DECREF(*donor); /* the owner has one */
    return options->dtor_info != NULL ? 0 : -1;
}

/// The steps that cannot fail: from here on the MemInfo gives the data back, NumPy does not.
static void move_ownership(PyArrayObject *array, PyArrayObject *donor, PyObject *base)
{
    if (donor != NULL) {
        ((PyArrayObject_fields *)donor)->mem_handler = PyArray_HANDLER(array);
        PyArray_ENABLEFLAGS(donor, NPY_ARRAY_OWNDATA);
        ((PyArrayObject_fields *)array)->mem_handler = NULL;
    }
    PyArray_CLEARFLAGS(array, NPY_ARRAY_OWNDATA);
    ((PyArrayObject_fields *)array)->base = base;
}

static int adopt_into(memrt_meminfo_object_t *shell, PyArrayObject *array, memrt_policy_t *policy)
{
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .policy = policy, .dtor = free_by_libc};
    PyArrayObject *donor = NULL;
    memrt_meminfo_t *mi;
    if (PyArray_HANDLER(array) != NULL && donor_options(array, &options, &donor) < 0) {
        return -1;
    }
    memrt_status_t status = memrt__api()->meminfo_adopt(
        PyArray_DATA(array), (size_t)PyArray_NBYTES(array), &options, &mi);
    if (status != MEMRT_OK) {
        if (options.dtor_info != NULL) {
            memrt__owner_discard(options.dtor_info);
        }
        memrt__raise(status, "cannot adopt an array of %zd bytes", PyArray_NBYTES(array));
        return -1;
    }
    move_ownership(array, donor, memrt__meminfo_fill(shell, mi));
    return 0;
}

static int adopt_in_place(PyArrayObject *array, PyObject *policy)
{
    PyObject *handler = memrt__handler_for(policy);
    if (handler == NULL) {
        return -1;
    }
    memrt_meminfo_object_t *shell = memrt__meminfo_shell();
    int result = shell != NULL ? adopt_into(shell, array, memrt__handler_policy(handler)) : -1;
    if (result < 0) {
        Py_XDECREF(shell);
    }
    Py_DECREF(handler);
    return result;
}

static PyObject *take_over(PyObject *module, PyObject *args)
{
    PyObject *array, *policy;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O:take_over", &PyArray_Type, &array, &policy)) {
        return NULL;
    }
    int managed = memrt__is_managed(array);
    if (managed != 0) {
        return managed > 0 ? Py_NewRef(Py_True) : NULL;
    }
    PyArrayObject *owner = owning_array((PyArrayObject *)array);
    if (!can_move(owner)) {
        Py_RETURN_FALSE;
    }
    if (adopt_in_place(owner, policy) < 0) {
        return NULL;
    }
    Py_RETURN_TRUE;
}

PyMethodDef memrt__adoption_methods[] = {
    {"take_over", take_over, METH_VARARGS,
     "take_over(array, policy) -> bool\n\n"
     "Put the memory of `array` under a MemInfo where it is. False when it can only be copied."},
    {NULL, NULL, 0, NULL},
};
