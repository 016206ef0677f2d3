#include "interop/arrow_import_parts.h"

#include <string.h>

#include "core/meminfo_object.h"
#include "core/owner.h"
#include "interop/arrow_capsule.h"
#include "support/arguments.h"
#include "support/errors.h"

/// Levels of children and dictionaries. A description of more levels could overflow the stack.
#define DEPTH_MAX 64

/// Number of children or buffers of one array beyond which the array is taken for malformed.
#define WIDTH_MAX ((int64_t)1 << 24)

static PyObject *refuse(const char *why)
{
    return memrt__raise_refusal(MEMRT_EINVAL, "cannot take the memory of an Arrow array", why);
}

/* --- Description. --- */

static int is_valid_schema(const struct ArrowSchema *schema)
{
    if (schema == NULL || schema->release == NULL) {
        refuse("the schema was released");
        return 0;
    }
    if (schema->format == NULL || schema->n_children < 0 || schema->n_children > WIDTH_MAX ||
        (schema->n_children != 0 && schema->children == NULL)) {
        refuse("the schema must have a format, and a number of children that exist");
        return 0;
    }
    return 1;
}

static int is_valid_array(const struct ArrowSchema *schema, const struct ArrowArray *array)
{
    if (array->release == NULL) {
        refuse("the array was released");
        return 0;
    }
    if (array->n_children != schema->n_children ||
        (array->n_children != 0 && array->children == NULL) ||
        (array->dictionary == NULL) != (schema->dictionary == NULL)) {
        refuse("the array must have the children and the dictionary of the schema");
        return 0;
    }
    if (array->n_buffers < 0 || array->n_buffers > WIDTH_MAX ||
        (array->n_buffers != 0 && array->buffers == NULL)) {
        refuse("the array must have a number of buffers that exist");
        return 0;
    }
    if (array->length < 0 || array->offset < 0 || array->length > INT64_MAX - array->offset ||
        array->null_count < -1 || array->null_count > array->length) {
        refuse("length and offset must not be negative, and the number of nulls must be from -1 "
               "to the length");
        return 0;
    }
    return 1;
}

/// Release the empty array of is_bool8, which owns nothing.
static void release_empty_array(struct ArrowArray *array)
{
    array->release = NULL;
}

/// Return whether elements of the format "c" are truth values: libmemrt reads the metadata when an
/// array without elements is adopted. -1 with MemoryError.
static int is_bool8(const struct ArrowSchema *schema)
{
    static const void *buffers[2];
    if (strcmp(schema->format, "c") != 0 || schema->metadata == NULL ||
        schema->dictionary != NULL || schema->n_children != 0) {
        return 0;
    }
    struct ArrowArray empty = {.n_buffers = 2, .buffers = buffers, .release = release_empty_array};
    memrt_arrow_view_t view = {.struct_size = sizeof(view)};
    memrt_meminfo_t *mi;
    if (memrt__api()->arrow_adopt(schema, &empty, NULL, &view, &mi, NULL) != MEMRT_OK) {
        PyErr_NoMemory(); /* the only reason: schema and array are valid */
        return -1;
    }
    memrt__api()->release(mi);
    return (view.flags & MEMRT_ARROW_BOOL8) != 0;
}

static PyObject *describe_array(const struct ArrowSchema *schema, const struct ArrowArray *array,
                                int depth);

/// Return a tuple with the addresses of the buffers.
static PyObject *describe_buffers(const struct ArrowArray *array)
{
    Py_ssize_t count = array != NULL ? (Py_ssize_t)array->n_buffers : 0;
    PyObject *buffers = PyTuple_New(count);
    for (Py_ssize_t i = 0; buffers != NULL && i < count; i++) {
        PyObject *address = PyLong_FromSize_t((size_t)array->buffers[i]);
        if (address == NULL) {
            Py_CLEAR(buffers);
            break;
        }
        PyTuple_SET_ITEM(buffers, i, address);
    }
    return buffers;
}

/// Return a tuple with the descriptions of the children.
static PyObject *describe_children(const struct ArrowSchema *schema, const struct ArrowArray *array,
                                   int depth)
{
    PyObject *children = PyTuple_New((Py_ssize_t)schema->n_children);
    for (Py_ssize_t i = 0; children != NULL && i < schema->n_children; i++) {
        PyObject *child = array != NULL && array->children[i] == NULL
                              ? refuse("the array was released")
                              : describe_array(schema->children[i],
                                               array != NULL ? array->children[i] : NULL, depth);
        if (child == NULL) {
            Py_CLEAR(children);
            break;
        }
        PyTuple_SET_ITEM(children, i, child);
    }
    return children;
}

static PyObject *describe_dictionary(const struct ArrowSchema *schema,
                                     const struct ArrowArray *array, int depth)
{
    if (schema->dictionary == NULL) {
        Py_RETURN_NONE;
    }
    return describe_array(schema->dictionary, array != NULL ? array->dictionary : NULL, depth);
}

/// Describe an array, or an array without elements if `array` is NULL. `depth`: levels that the
/// array may have.
static PyObject *describe_array(const struct ArrowSchema *schema, const struct ArrowArray *array,
                                int depth)
{
    if (depth == 0) {
        return refuse("an array must have at most 64 levels of children");
    }
    if (!is_valid_schema(schema) || (array != NULL && !is_valid_array(schema, array))) {
        return NULL;
    }
    int bool8 = is_bool8(schema);
    PyObject *parts[3] = {NULL, NULL, NULL};
    if (bool8 < 0 || (parts[0] = describe_buffers(array)) == NULL ||
        (parts[1] = describe_children(schema, array, depth - 1)) == NULL ||
        (parts[2] = describe_dictionary(schema, array, depth - 1)) == NULL) {
        Py_XDECREF(parts[0]);
        Py_XDECREF(parts[1]);
        return NULL;
    }
    return Py_BuildValue(
        "(NNNLLLLNNN)", memrt__text(schema->format),
        memrt__text(schema->name != NULL ? schema->name : ""), PyBool_FromLong(bool8),
        (long long)schema->flags, array != NULL ? (long long)array->length : 0,
        array != NULL ? (long long)array->null_count : 0,
        array != NULL ? (long long)array->offset : 0, parts[0], parts[1], parts[2]);
}

/* --- The move into a MemInfo. --- */

/// Move the struct of an array to `*moved`, and return whether the struct was not released before.
static int move_struct(struct ArrowArray *array, struct ArrowArray *moved)
{
    MEMRT_MUTEX_LOCK(&memrt__arrow_mutex);
    *moved = *array;
    array->release = NULL;
    MEMRT_MUTEX_UNLOCK(&memrt__arrow_mutex);
    return moved->release != NULL;
}

/// Release the array of a root, if the root got one. This is the give_back callback of its owner.
static void release_root_array(void *loan)
{
    struct ArrowArray *array = loan;
    if (array->release != NULL) {
        array->release(array);
    }
    PyMem_Free(array);
}

/// Fill a shell with a MemInfo that owns the struct `moved`. On failure returns NULL with an
/// exception, and the caller keeps `moved`.
static PyObject *adopt_struct(memrt_meminfo_object_t *shell, struct ArrowArray *moved,
                              memrt_policy_t *policy)
{
    memrt_owner_t *owner = memrt__owner_of_loan(release_root_array, moved, NULL);
    if (owner == NULL) {
        return NULL;
    }
    memrt_meminfo_t *mi;
    memrt_new_options_t options = memrt__owner_options(owner, policy);
    options.readonly = 1;
    memrt_status_t status = memrt__api()->meminfo_adopt(NULL, 0, &options, &mi);
    if (status != MEMRT_OK) {
        memrt__owner_discard(owner);
        return memrt__raise(status, "cannot take the memory of an Arrow array");
    }
    return memrt__meminfo_fill(shell, mi);
}

/// Return a new MemInfo that will release an array. `*moved` gets the place of the array, and
/// counts as released until then.
static PyObject *create_root(memrt_policy_t *policy, struct ArrowArray **moved)
{
    *moved = PyMem_Calloc(1, sizeof(**moved));
    if (*moved == NULL) {
        return PyErr_NoMemory();
    }
    memrt_meminfo_object_t *shell = memrt__meminfo_shell();
    PyObject *root = shell != NULL ? adopt_struct(shell, *moved, policy) : NULL;
    if (root == NULL) {
        Py_XDECREF(shell);
        PyMem_Free(*moved);
    }
    return root;
}

PyObject *memrt__arrow_take_parts(const struct ArrowSchema *schema, struct ArrowArray *array,
                                  memrt_policy_t *policy)
{
    struct ArrowArray *moved = NULL;
    PyObject *root = array != NULL ? create_root(policy, &moved) : Py_NewRef(Py_None);
    if (root == NULL) {
        return NULL;
    }
    PyObject *parts = array != NULL && !move_struct(array, moved)
                          ? refuse("the array was released")
                          : describe_array(schema, moved, DEPTH_MAX);
    if (parts == NULL) {
        Py_DECREF(root); /* the owner keeps the exception */
        return NULL;
    }
    return Py_BuildValue("(NN)", root, parts);
}
