#include "live.h"

#include "errors.h"

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

static PyObject *as_tuple(const memrt_live_t *row)
{
    PyObject *policy = policy_name_at(row->policy);
    if (policy == NULL) {
        return NULL;
    }
    return Py_BuildValue("(KKKnnKKNIs)", (unsigned long long)row->id,
                         (unsigned long long)row->meminfo, (unsigned long long)row->data,
                         (Py_ssize_t)row->size, (Py_ssize_t)row->refcount,
                         (unsigned long long)row->age_ns, (unsigned long long)row->thread, policy,
                         (unsigned)row->kind, row->name);
}

static PyObject *as_list(const memrt_live_t *rows, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *row = as_tuple(&rows[i]);
        if (row == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, (Py_ssize_t)i, row);
        }
    }
    return list;
}

static PyObject *live(PyObject *module, PyObject *unused)
{
    memrt_live_t *rows;
    size_t count;
    (void)module;
    (void)unused;
    memrt_status_t status = memrt__api()->live(&rows, &count);
    if (status != MEMRT_OK) {
        return memrt__raise(status, "cannot list live buffers");
    }
    PyObject *list = as_list(rows, count);
    memrt__api()->live_free(rows);
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

PyMethodDef memrt__live_methods[] = {
    {"live", live, METH_NOARGS,
     "live() -> list of tuples\n\nThe tracked live buffers in the order of memrt_live_t."},
    {"set_tracking", set_tracking, METH_O,
     "set_tracking(on) -> bool\n\nTurn tracking on or off; returns whether it was on."},
    {"tracking_enabled", tracking_enabled, METH_NOARGS,
     "tracking_enabled() -> bool\n\nWhether buffers born now are listed."},
    {NULL, NULL, 0, NULL},
};
