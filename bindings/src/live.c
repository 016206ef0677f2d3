#include "live.h"

#include <stdlib.h>

#include "errors.h"
#include "frames.h"

/// What rows have in common is made once.
typedef struct listing {
    PyObject **policies; ///< their names by index, as far as they were met; owned
    uint32_t limit;      ///< number of indices
    PyObject *kinds[5];  ///< texts by memrt_kind_t; owned
    PyObject *scopes;    ///< borrowed dict: path of a scope by its number
} listing_t;

static void listing_end(listing_t *listing)
{
    for (uint32_t i = 0; listing->policies != NULL && i < listing->limit; i++) {
        Py_XDECREF(listing->policies[i]);
    }
    free(listing->policies);
    for (size_t i = 0; i < Py_ARRAY_LENGTH(listing->kinds); i++) {
        Py_XDECREF(listing->kinds[i]);
    }
}

/// -1 with an exception.
static int listing_begin(listing_t *listing, PyObject *scopes)
{
    static const char *const kinds[] = {"", "inline", "adopted", "resizable", "block"};
    *listing = (listing_t){.limit = memrt__api()->policy_limit(), .scopes = scopes};
    listing->policies = calloc(listing->limit, sizeof(PyObject *));
    for (size_t i = 0; i < Py_ARRAY_LENGTH(kinds); i++) {
        listing->kinds[i] = PyUnicode_InternFromString(kinds[i]);
    }
    if (listing->policies == NULL) {
        PyErr_NoMemory();
    }
    if (PyErr_Occurred() != NULL) {
        listing_end(listing);
        return -1;
    }
    return 0;
}

/// Name of a policy by index, "" for one that is gone. New reference.
static PyObject *policy_name_at(uint32_t index)
{
    const memrt_api_t *api = memrt__api();
    memrt_policy_t *policy = api->policy_at(index);
    if (policy == NULL) {
        return PyUnicode_FromString("");
    }
    PyObject *name = PyUnicode_FromString(api->policy_name(policy));
    api->policy_release(policy);
    return name;
}

/// New reference.
static PyObject *policy_of(listing_t *listing, uint32_t index)
{
    PyObject **name = &listing->policies[index % listing->limit];
    if (*name == NULL) {
        *name = policy_name_at(index);
    }
    return Py_XNewRef(*name);
}

/// Path of the scope with that number, None for one that is gone, or for none. New reference.
static PyObject *scope_of(const listing_t *listing, uint32_t number)
{
    PyObject *path = NULL;
    if (number != 0) {
        PyObject *key = PyLong_FromUnsignedLong(number);
        if (key == NULL) {
            return NULL;
        }
        path = PyDict_GetItemWithError(listing->scopes, key);
        Py_DECREF(key);
        if (path == NULL && PyErr_Occurred() != NULL) {
            return NULL;
        }
    }
    return Py_NewRef(path == NULL ? Py_None : path);
}

static PyObject *as_tuple(listing_t *listing, const memrt_buffer_t *row)
{
    const memrt_live_t *live = &row->live;
    PyObject *kind = listing->kinds[live->kind < Py_ARRAY_LENGTH(listing->kinds) ? live->kind : 0];
    return Py_BuildValue("(KnnzdkNOKNkdO)", (unsigned long long)live->id, (Py_ssize_t)live->size,
                         (Py_ssize_t)live->refcount, live->name[0] == '\0' ? NULL : live->name,
                         (double)live->age_ns / 1e9, (unsigned long)live->thread,
                         policy_of(listing, live->policy), kind, (unsigned long long)live->data,
                         scope_of(listing, row->scope), (unsigned long)row->site, row->stands_for,
                         row->inherited ? Py_True : Py_False);
}

static PyObject *as_list(listing_t *listing, const memrt_buffer_t *rows, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *row = as_tuple(listing, &rows[i]);
        if (row == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, (Py_ssize_t)i, row);
        }
    }
    return list;
}

static PyObject *live(PyObject *module, PyObject *scopes)
{
    void *rows;
    size_t count;
    listing_t listing;
    (void)module;
    if (!PyDict_Check(scopes)) {
        return PyErr_Format(PyExc_TypeError, "scopes must be a dict, not %.100s",
                            Py_TYPE(scopes)->tp_name);
    }
    if (listing_begin(&listing, scopes) < 0) {
        return NULL;
    }
    PyObject *list = NULL;
    memrt_status_t status = memrt__api()->buffers(sizeof(memrt_buffer_t), &rows, &count);
    if (status != MEMRT_OK) {
        memrt__raise(status, "cannot list live buffers");
    } else {
        list = as_list(&listing, rows, count);
        memrt__api()->live_free(rows);
    }
    listing_end(&listing);
    return list;
}

static PyObject *set_tracking(PyObject *module, PyObject *object)
{
    (void)module;
    int on = PyObject_IsTrue(object);
    return on < 0 ? NULL : PyBool_FromLong(memrt__api()->tracking(on));
}

static PyObject *tracking_enabled(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyBool_FromLong(memrt__api()->tracking_enabled());
}

static PyObject *tracking_get(PyObject *module, PyObject *unused)
{
    memrt_tracking_t now = {.struct_size = sizeof(now)};
    (void)module;
    (void)unused;
    memrt_status_t status = memrt__api()->tracking_get(&now);
    if (status != MEMRT_OK) {
        return memrt__raise(status, "cannot say how births are tracked");
    }
    return Py_BuildValue("(NIIK)", PyBool_FromLong(now.on), now.frames, now.native,
                         (unsigned long long)now.sample);
}

/// A block of tracking that is open. Under the GIL, as what follows.
typedef struct opened {
    struct opened *outer; ///< entered before it; NULL: none
    memrt_tracking_t wanted;
} opened_t;

static opened_t *innermost;     ///< entered last of those that are open
static memrt_tracking_t before; ///< how it was outside of all

static int read_tracking(PyObject *tuple, memrt_tracking_t *out)
{
    unsigned long long sample;
    *out = (memrt_tracking_t){.struct_size = sizeof(*out)};
    if (!PyArg_ParseTuple(tuple, "pIIK:tracking", &out->on, &out->frames, &out->native, &sample)) {
        return -1;
    }
    out->sample = sample;
    return 0;
}

/// -1 with an exception.
static int track(const memrt_tracking_t *wanted)
{
    memrt_status_t status = memrt__api()->tracking_set(wanted);
    if (status != MEMRT_OK) {
        memrt__raise(status, "cannot track births in this way");
        return -1;
    }
    return 0;
}

static int read_before(void)
{
    before = (memrt_tracking_t){.struct_size = sizeof(before)};
    memrt_status_t status = memrt__api()->tracking_get(&before);
    if (status != MEMRT_OK) {
        memrt__raise(status, "cannot say how births are tracked");
        return -1;
    }
    return 0;
}

static PyObject *tracking_open(PyObject *module, PyObject *tuple)
{
    memrt_tracking_t wanted;
    (void)module;
    if (read_tracking(tuple, &wanted) < 0 || (innermost == NULL && read_before() < 0)) {
        return NULL;
    }
    opened_t *block = malloc(sizeof(*block));
    PyObject *number = block == NULL ? PyErr_NoMemory() : PyLong_FromVoidPtr(block);
    if (number == NULL || track(&wanted) < 0) {
        Py_XDECREF(number);
        free(block);
        return NULL;
    }
    *block = (opened_t){innermost, wanted};
    innermost = block;
    return number;
}

/// Take a block out; NULL: it is not open.
static opened_t *take(const void *address)
{
    opened_t **link = &innermost;
    while (*link != NULL && *link != address) {
        link = &(*link)->outer;
    }
    opened_t *block = *link;
    if (block != NULL) {
        *link = block->outer;
    }
    return block;
}

/// Needs no memory.
static PyObject *tracking_close(PyObject *module, PyObject *number)
{
    (void)module;
    const void *address = PyLong_AsVoidPtr(number);
    if (address == NULL && PyErr_Occurred() != NULL) {
        return NULL;
    }
    opened_t *block = take(address);
    if (block == NULL) {
        Py_RETURN_NONE;
    }
    free(block);
    if (track(innermost == NULL ? &before : &innermost->wanted) < 0) {
        return NULL;
    }
    if (innermost == NULL && !before.on) {
        memrt__frames_forget();
    }
    Py_RETURN_NONE;
}

static PyObject *tracking_births(PyObject *module, PyObject *unused)
{
    memrt_tracking_t now = {.struct_size = sizeof(now)};
    (void)module;
    (void)unused;
    memrt_status_t status = memrt__api()->tracking_get(&now);
    if (status != MEMRT_OK) {
        return memrt__raise(status, "cannot say how many births were listed");
    }
    return PyLong_FromUnsignedLongLong(now.births);
}

PyMethodDef memrt__live_methods[] = {
    {"live", live, METH_O,
     "live(scopes) -> list of tuples\n\nThe tracked live buffers, each in the order of "
     "LiveBuffer; `scopes` has\nthe path of each scope by its number."},
    {"set_tracking", set_tracking, METH_O,
     "set_tracking(on) -> bool\n\nTurn tracking on or off; returns whether it was on."},
    {"tracking_enabled", tracking_enabled, METH_NOARGS,
     "tracking_enabled() -> bool\n\nWhether buffers born now are listed, all or a sample."},
    {"tracking_get", tracking_get, METH_NOARGS,
     "tracking_get() -> (on, frames, native, sample)\n\nAs memrt_tracking_t."},
    {"tracking_open", tracking_open, METH_O,
     "tracking_open((on, frames, native, sample)) -> int\n\n"
     "Track births as memrt_tracking_t says until tracking_close() is given the number, or "
     "another\n"
     "is open that was opened later."},
    {"tracking_close", tracking_close, METH_O,
     "tracking_close(number)\n\nTrack births as the last of those that are left says; of none, as "
     "before."},
    {"tracking_births", tracking_births, METH_NOARGS,
     "tracking_births() -> int\n\nSerial number of the last birth that was listed."},
    {NULL, NULL, 0, NULL},
};
