#include "observe/live.h"

#include <stdlib.h>

#include "observe/site_recorder.h"
#include "support/arguments.h"
#include "support/errors.h"
#include "support/free_threading.h"

/// Objects that the rows of a listing share, created once.
typedef struct listing {
    PyObject **policies;   ///< policy names by index, NULL for policies not met yet; owned
    uint32_t limit;        ///< number of policy indices
    PyObject *kinds[5];    ///< texts by memrt_kind_t; owned
    PyObject *find_scopes; ///< borrowed function that returns `scopes`
    PyObject *scopes;      ///< dict from scope number to path; NULL: not needed yet; owned
} listing_t;

static void end_listing(listing_t *listing)
{
    for (uint32_t i = 0; listing->policies != NULL && i < listing->limit; i++) {
        Py_XDECREF(listing->policies[i]);
    }
    free(listing->policies);
    Py_XDECREF(listing->scopes);
    for (size_t i = 0; i < Py_ARRAY_LENGTH(listing->kinds); i++) {
        Py_XDECREF(listing->kinds[i]);
    }
}

/// Begin a listing. -1 with an exception.
static int begin_listing(listing_t *listing, PyObject *find_scopes)
{
    static const char *const kinds[] = {"", "inline", "adopted", "resizable", "block"};
    *listing = (listing_t){.limit = memrt__api()->policy_limit(), .find_scopes = find_scopes};
    listing->policies = calloc(listing->limit, sizeof(PyObject *));
    for (size_t i = 0; i < Py_ARRAY_LENGTH(kinds); i++) {
        listing->kinds[i] = PyUnicode_InternFromString(kinds[i]);
    }
    if (listing->policies == NULL) {
        PyErr_NoMemory();
    }
    if (PyErr_Occurred() != NULL) {
        end_listing(listing);
        return -1;
    }
    return 0;
}

/// Return the name of a policy by index, "" for a destroyed policy. New reference.
static PyObject *read_policy_name(uint32_t index)
{
    const memrt_api_t *api = memrt__api();
    memrt_policy_t *policy = api->policy_at(index);
    if (policy == NULL) { /* GCOV_EXCL_BR_LINE: only after a race with the end of the policy */
        return PyUnicode_FromString("");
    }
    PyObject *name = memrt__text(api->policy_name(policy));
    api->policy_release(policy);
    return name;
}

/// Return the name of a policy, cached by index. New reference.
static PyObject *get_policy_name(listing_t *listing, uint32_t index)
{
    PyObject **name = &listing->policies[index % listing->limit];
    if (*name == NULL) {
        *name = read_policy_name(index);
    }
    return Py_XNewRef(*name);
}

/// Get the paths of all scopes, once per listing. The cost grows with the number of scopes, so this
/// runs only if a buffer has a scope. -1 with an exception.
static int load_scopes(listing_t *listing)
{
    if (listing->scopes != NULL) {
        return 0;
    }
    listing->scopes = PyObject_CallNoArgs(listing->find_scopes);
    if (listing->scopes != NULL && !PyDict_Check(listing->scopes)) {
        PyErr_Format(PyExc_TypeError, "scopes must be a dict, got %.100s",
                     Py_TYPE(listing->scopes)->tp_name);
        Py_CLEAR(listing->scopes);
    }
    return listing->scopes != NULL ? 0 : -1;
}

/// Return the path of a scope by number; None for number 0 and for a destroyed scope. New
/// reference.
static PyObject *get_scope_path(listing_t *listing, uint32_t number)
{
    if (number == 0) {
        Py_RETURN_NONE;
    }
    PyObject *key = load_scopes(listing) == 0 ? PyLong_FromUnsignedLong(number) : NULL;
    if (key == NULL) {
        return NULL;
    }
    PyObject *path = memrt__dict_get(listing->scopes, key);
    Py_DECREF(key);
    if (path == NULL && PyErr_Occurred() == NULL) {
        Py_RETURN_NONE;
    }
    return path;
}

/// Return the name of a buffer, or None. New reference.
static PyObject *get_buffer_name(const memrt_live_t *live)
{
    if (live->name[0] == '\0') {
        Py_RETURN_NONE;
    }
    return memrt__text(live->name);
}

static PyObject *build_row(listing_t *listing, const memrt_buffer_t *row)
{
    const memrt_live_t *live = &row->live;
    /* GCOV_EXCL_BR_START: this libmemrt has no other kind */
    PyObject *kind = listing->kinds[live->kind < Py_ARRAY_LENGTH(listing->kinds) ? live->kind : 0];
    /* GCOV_EXCL_BR_STOP */
    return Py_BuildValue(
        "(KnnNdkNOKNkdO)", (unsigned long long)live->id, (Py_ssize_t)live->size,
        (Py_ssize_t)live->refcount, get_buffer_name(live), (double)live->age_ns / 1e9,
        (unsigned long)live->thread, get_policy_name(listing, live->policy), kind,
        (unsigned long long)live->data, get_scope_path(listing, row->scope),
        (unsigned long)row->site, row->weight, row->inherited ? Py_True : Py_False);
}

static PyObject *build_rows(listing_t *listing, const memrt_buffer_t *rows, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *row = build_row(listing, &rows[i]);
        if (row == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, (Py_ssize_t)i, row);
        }
    }
    return list;
}

static PyObject *list_live_buffers(PyObject *module, PyObject *find_scopes)
{
    void *rows;
    size_t count;
    listing_t listing;
    (void)module;
    if (begin_listing(&listing, find_scopes) < 0) {
        return NULL;
    }
    PyObject *list = NULL;
    memrt_status_t status = memrt__api()->buffers(sizeof(memrt_buffer_t), &rows, &count);
    if (status != MEMRT_OK) {
        memrt__raise(status, "cannot list live buffers");
    } else {
        list = build_rows(&listing, rows, count);
        memrt__api()->live_free(rows);
    }
    end_listing(&listing);
    return list;
}

static PyObject *set_tracking(PyObject *module, PyObject *object)
{
    (void)module;
    int on = PyObject_IsTrue(object);
    return on < 0 ? NULL : PyBool_FromLong(memrt__api()->tracking(on));
}

static PyObject *is_tracking_enabled(PyObject *module, PyObject *unused)
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
    if (status != MEMRT_OK) { /* GCOV_EXCL_BR_LINE: the struct has the right size */
        return memrt__raise(status, "cannot read the tracking settings");
    }
    return Py_BuildValue("(NIIK)", PyBool_FromLong(now.on), now.frames, now.native,
                         (unsigned long long)now.sample);
}

/// An open `with tracking()` block. Blocks, and the variables below, are state of the process.
typedef struct tracking_block {
    struct tracking_block *outer; ///< next-outer block; NULL: none
    memrt_tracking_t settings;
} tracking_block_t;

/// The open block that was entered last. Its settings are in force.
static tracking_block_t *innermost_block;
static memrt_tracking_t outer_tracking; ///< settings outside of all blocks

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

/// Put tracking settings in force. -1 with an exception.
static int apply_tracking(const memrt_tracking_t *settings)
{
    memrt_status_t status = memrt__api()->tracking_set(settings);
    if (status != MEMRT_OK) {
        memrt__raise(status, "cannot set the tracking settings");
        return -1;
    }
    return 0;
}

static int save_outer_tracking(void)
{
    outer_tracking = (memrt_tracking_t){.struct_size = sizeof(outer_tracking)};
    memrt_status_t status = memrt__api()->tracking_get(&outer_tracking);
    if (status != MEMRT_OK) { /* GCOV_EXCL_BR_LINE: the struct has the right size */
        memrt__raise(status, "cannot read the tracking settings");
        return -1;
    }
    return 0;
}

/// Open a block and return its number. NULL with an exception.
static PyObject *open_block(PyObject *tuple)
{
    memrt_tracking_t settings;
    if (read_tracking(tuple, &settings) < 0 ||
        (innermost_block == NULL && save_outer_tracking() < 0)) {
        return NULL;
    }
    tracking_block_t *block = malloc(sizeof(*block));
    PyObject *number = block == NULL ? PyErr_NoMemory() : PyLong_FromVoidPtr(block);
    if (number == NULL || apply_tracking(&settings) < 0) {
        Py_XDECREF(number);
        free(block);
        return NULL;
    }
    *block = (tracking_block_t){innermost_block, settings};
    innermost_block = block;
    return number;
}

static PyObject *tracking_open(PyObject *module, PyObject *tuple)
{
    PyObject *number;
    (void)module;
    MEMRT_BEGIN_PROCESS_STATE();
    number = open_block(tuple);
    MEMRT_END_PROCESS_STATE();
    return number;
}

/// Unlink a block; NULL: the block is not open.
static tracking_block_t *unlink_block(const void *address)
{
    tracking_block_t **link = &innermost_block;
    while (*link != NULL && *link != address) {
        link = &(*link)->outer;
    }
    tracking_block_t *block = *link;
    if (block != NULL) {
        *link = block->outer;
    }
    return block;
}

/// Close a block and return None. Allocates no memory. NULL with an exception.
static PyObject *close_block(PyObject *number)
{
    const void *address = PyLong_AsVoidPtr(number);
    if (address == NULL && PyErr_Occurred() != NULL) {
        return NULL;
    }
    tracking_block_t *block = unlink_block(address);
    if (block == NULL) {
        Py_RETURN_NONE;
    }
    free(block);
    if (apply_tracking(innermost_block == NULL ? &outer_tracking : &innermost_block->settings) <
        0) {
        return NULL;
    }
    if (innermost_block == NULL && !outer_tracking.on) {
        memrt__site_recorder_forget();
    }
    Py_RETURN_NONE;
}

static PyObject *tracking_close(PyObject *module, PyObject *number)
{
    PyObject *result;
    (void)module;
    MEMRT_BEGIN_PROCESS_STATE();
    result = close_block(number);
    MEMRT_END_PROCESS_STATE();
    return result;
}

static PyObject *get_last_serial(PyObject *module, PyObject *unused)
{
    memrt_tracking_t now = {.struct_size = sizeof(now)};
    (void)module;
    (void)unused;
    memrt_status_t status = memrt__api()->tracking_get(&now);
    if (status != MEMRT_OK) { /* GCOV_EXCL_BR_LINE: the struct has the right size */
        return memrt__raise(status, "cannot read the number of tracked allocations");
    }
    return PyLong_FromUnsignedLongLong(now.allocations);
}

static PyObject *locate(PyObject *module, PyObject *argument)
{
    uintptr_t address;
    memrt_location_t found = {.struct_size = sizeof(found)};
    (void)module;
    if (!memrt__address_argument(argument, &address)) {
        return NULL;
    }
    memrt_status_t status = memrt__api()->locate((const void *)address, &found);
    if (status != MEMRT_OK) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue("(KnKNk)", (unsigned long long)found.data, (Py_ssize_t)found.size,
                         (unsigned long long)found.id, read_policy_name(found.policy),
                         (unsigned long)found.scope);
}

PyMethodDef memrt__live_methods[] = {
    {"live", list_live_buffers, METH_O,
     "live(find_scopes) -> list of tuples\n\n"
     "Return the tracked live buffers, each in the order of LiveBuffer. `find_scopes` is called\n"
     "if a buffer has a scope, and returns a dict of the paths of scopes by number."},
    {"locate", locate, METH_O,
     "locate(address) -> (address, nbytes, id, policy, scope) or None\n\n"
     "Return the buffer around an address; id and scope are 0 if the buffer has none."},
    {"set_tracking", set_tracking, METH_O,
     "set_tracking(on) -> bool\n\nTurn tracking on or off. Return whether tracking was on."},
    {"tracking_enabled", is_tracking_enabled, METH_NOARGS,
     "tracking_enabled() -> bool\n\n"
     "Return whether new allocations are tracked, all or a sample."},
    {"tracking_get", tracking_get, METH_NOARGS,
     "tracking_get() -> (on, frames, native, sample)\n\n"
     "Return the tracking settings, as memrt_tracking_t."},
    {"tracking_open", tracking_open, METH_O,
     "tracking_open((on, frames, native, sample)) -> int\n\n"
     "Open a block with tracking settings, as memrt_tracking_t, and return the number of the\n"
     "block. The settings hold until tracking_close(number), or until a later block opens."},
    {"tracking_close", tracking_close, METH_O,
     "tracking_close(number)\n\n"
     "Close a block. The settings of the last opened block that is still open apply, or\n"
     "without a block the settings from before."},
    {"tracking_allocations", get_last_serial, METH_NOARGS,
     "tracking_allocations() -> int\n\nReturn the serial number of the last tracked allocation."},
    {NULL, NULL, 0, NULL},
};
