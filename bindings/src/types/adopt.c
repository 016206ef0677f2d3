/// Adoption moves the duty to free the data from a NumPy array to a MemInfo. The array keeps its
/// data pointer, loses OWNDATA and gets the MemInfo object as its base. On failure the array is
/// unchanged.

#include "types/adopt.h"

#include <stdlib.h>

#include "core/base_lookup.h"
#include "core/current_policy.h"
#include "core/mem_handler.h"
#include "core/meminfo_object.h"
#include "core/owner.h"
#include "support/errors.h"
#include "support/free_threading.h"
#include "support/ndarray.h"

/// Return the array that owns the memory of `array`, possibly `array` itself; NULL when no array
/// does.
static PyArrayObject *find_owning_array(PyArrayObject *array)
{
    while (!memrt__array_owns_data(array)) {
        PyObject *base = MEMRT__ARRAY_MEMBER(array, base);
        if (base == NULL || !PyArray_Check(base)) {
            return NULL;
        }
        array = (PyArrayObject *)base;
    }
    return array;
}

/// Return whether `array` is `owner` or borrows its memory through other arrays.
static int leads_to_owner(PyArrayObject *array, PyArrayObject *owner)
{
    PyObject *object = (PyObject *)array;
    while (object != NULL && PyArray_Check(object) && object != (PyObject *)owner) {
        object = MEMRT__ARRAY_MEMBER(object, base);
    }
    return object == (PyObject *)owner;
}

/// Return whether ownership can move. NumPy must have no duty at the end of the array except
/// freeing the data.
static int can_move_ownership(PyArrayObject *array)
{
    return array != NULL && memrt__array_owns_data(array) &&
           MEMRT__ARRAY_MEMBER(array, base) == NULL &&
           !memrt_descr_has_references(PyArray_DESCR(array));
}

/// Free the data as NumPy frees the data of an array without a handler.
static void free_libc_data(void *data, size_t size, void *info)
{
    (void)size;
    (void)info;
    free(data);
}

/// Create an array like `array` over the same data, which will own the data in place of `array`. It
/// does not own the data yet.
static PyArrayObject *create_donor_array(PyArrayObject *array)
{
    Py_INCREF(PyArray_DESCR(array));
    return (PyArrayObject *)PyArray_NewFromDescr(
        &PyArray_Type, PyArray_DESCR(array), PyArray_NDIM(array), PyArray_DIMS(array),
        PyArray_STRIDES(array), PyArray_DATA(array), NPY_ARRAY_WRITEABLE, NULL);
}

/// Create the owner of memory that a handler allocated: a donor array, whose end runs that handler.
/// -1 with an exception.
static int create_donor_owner(PyArrayObject *array, memrt_new_options_t *options,
                              PyArrayObject **donor)
{
    *donor = create_donor_array(array);
    if (*donor == NULL) {
        return -1;
    }
    options->dtor = memrt__owner_dtor;
    options->dtor_info = memrt__owner_new((PyObject *)*donor, NULL, 0, 0);
    Py_DECREF(*donor); /* the owner holds another reference */
    return options->dtor_info != NULL ? 0 : -1;
}

/// Move ownership, in steps that cannot fail. From here on the MemInfo frees the data, and NumPy
/// does not. At each step the array has a base or owns its data, for other threads that look.
static void move_ownership(PyArrayObject *array, PyArrayObject *donor, PyObject *base)
{
    PyArrayObject_fields *members = (PyArrayObject_fields *)array;
    if (donor != NULL) {
        ((PyArrayObject_fields *)donor)->mem_handler = members->mem_handler;
        PyArray_ENABLEFLAGS(donor, NPY_ARRAY_OWNDATA);
        MEMRT_SHARED_WRITE(members->mem_handler, NULL);
    }
    MEMRT_SHARED_WRITE(members->base, base);
    MEMRT_SHARED_WRITE(members->flags, members->flags & ~NPY_ARRAY_OWNDATA);
}

static int adopt_into_shell(memrt_meminfo_object_t *shell, PyArrayObject *array,
                            memrt_policy_t *policy)
{
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .policy = policy, .dtor = free_libc_data};
    PyArrayObject *donor = NULL;
    memrt_meminfo_t *mi;
    if (PyArray_HANDLER(array) != NULL && create_donor_owner(array, &options, &donor) < 0) {
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

/// Adopt an array that may have been adopted since the check. Returns 1; 0 if ownership cannot move
/// any more; -1 with an exception.
static int try_to_adopt(memrt_meminfo_object_t *shell, PyArrayObject *array, memrt_policy_t *policy)
{
    static memrt_mutex_t mutex = MEMRT_MUTEX_INIT;
    int result = 0;
    MEMRT_MUTEX_LOCK(&mutex);
    if (can_move_ownership(array)) {
        result = adopt_into_shell(shell, array, policy) < 0 ? -1 : 1;
    }
    MEMRT_MUTEX_UNLOCK(&mutex);
    return result;
}

static int adopt_owning_array(PyArrayObject *array, PyObject *policy)
{
    PyObject *handler = memrt__current_handler_for(policy);
    if (handler == NULL) {
        return -1;
    }
    memrt_meminfo_object_t *shell = memrt__meminfo_shell();
    int result = shell != NULL ? try_to_adopt(shell, array, memrt__handler_policy(handler)) : -1;
    if (result <= 0) {
        Py_XDECREF(shell);
    }
    Py_DECREF(handler);
    return result;
}

static PyObject *take_over_array(PyObject *module, PyObject *args)
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
    PyArrayObject *owner = find_owning_array((PyArrayObject *)array);
    Py_XINCREF(owner); /* code of the policy object may give `array` another base */
    int adopted = can_move_ownership(owner) ? adopt_owning_array(owner, policy) : 0;
    int is_settled = adopted > 0 && leads_to_owner((PyArrayObject *)array, owner);
    Py_XDECREF(owner);
    /* The array may have another base now, or another thread may have adopted the array. The
     * second look can raise MemoryError, and no error may follow an adoption. */
    if (adopted >= 0 && !is_settled) {
        adopted = memrt__is_managed(array);
    }
    return adopted >= 0 ? PyBool_FromLong(adopted) : NULL;
}

PyMethodDef memrt__adoption_methods[] = {
    {"take_over", take_over_array, METH_VARARGS,
     "take_over(array, policy) -> bool\n\n"
     "Move the memory of `array` to a MemInfo without a copy. Return False if a copy is needed."},
    {NULL, NULL, 0, NULL},
};
