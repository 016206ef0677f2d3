#include "observe/holders.h"

#include "core/meminfo_object.h"
#include "observe/base_chain.h"
#include "observe/frame_locals.h"
#include "observe/holder_report.h"
#include "observe/members.h"
#include "support/errors.h"
#include "support/free_threading.h"
#include "support/ndarray.h"

/// Maximum number of reported objects for a buffer.
#define OBJECTS_MOST 1000

/// The buffer of a query.
typedef struct query {
    PyObject *object;
    PyObject *address;            ///< address of the first byte; NULL: `object` leads to the buffer
    Py_ssize_t caller_references; ///< references to `object` that the caller's own frames hold
    memrt_meminfo_t *mi;
    memrt_buffer_key_t key;
    size_t held_references; ///< references to `mi` that the query holds, 0 or 1
} query_t;

static int raise_unsupported_type(PyObject *object)
{
    if (memrt__link_maybe(object)) {
        return memrt__raise_foreign(object);
    }
    PyErr_Format(PyExc_TypeError,
                 "expected an array, a memoryview, a memrt.MemInfo or a capsule 'memrt.meminfo', "
                 "got %.200s",
                 Py_TYPE(object)->tp_name);
    return -1;
}

/// Note whether the query holds a reference to `mi`. Returns `result`.
static int record_reference(int result, query_t *out)
{
    out->held_references = result == 0;
    return result;
}

/// Find the MemInfo at the end of a chain. A tiny block without a MemInfo gets one. -1 with an
/// exception.
static int resolve_anchor(PyObject *anchor, query_t *out)
{
    memrt_link_t link = memrt__link_of(anchor);
    out->mi = memrt__link_meminfo(anchor);
    if (out->mi != NULL) {
        return 0;
    }
    if (link == MEMRT_LINK_BLOCK) {
        return record_reference(
            memrt__block_meminfo(memrt__api(), (PyArrayObject *)anchor, &out->mi), out);
    }
    if (link == MEMRT_LINK_MEMINFO) {
        (void)memrt__meminfo_get((memrt_meminfo_object_t *)anchor);
        return -1;
    }
    int exports = memrt_exporter_check(anchor);
    if (exports <= 0) {
        return exports == 0 ? raise_unsupported_type(out->object) : -1;
    }
    return record_reference(memrt__exporter_meminfo(memrt__api(), anchor, &out->mi), out);
}

/// Find the live buffer whose first byte is at the address. Only tracked and named buffers are
/// found. -1 with an exception.
static int resolve_address(query_t *query)
{
    void *data = PyLong_AsVoidPtr(query->address);
    if (data == NULL && PyErr_Occurred() != NULL) {
        return -1;
    }
    memrt_status_t status = memrt__api()->find(data, &query->mi);
    if (status != MEMRT_OK) {
        memrt__raise(status, "cannot find the buffer at %p", data);
        return -1;
    }
    return record_reference(0, query);
}

static int resolve_object(query_t *query)
{
    PyObject *anchor = memrt_object_anchor(memrt__api(), query->object);
    if (anchor == NULL) {
        return -1;
    }
    int result = resolve_anchor(anchor, query);
    Py_DECREF(anchor);
    return result;
}

static int resolve_query(query_t *query)
{
    int result = query->address != NULL ? resolve_address(query) : resolve_object(query);
    query->key = result == 0 ? memrt__meminfo_key(query->mi) : 0;
    return result;
}

static int add_members(memrt_report_t *report, memrt_buffer_key_t key)
{
    memrt_members_t members;
    int result = memrt__members_find(report->graph, key, &members);
    for (size_t i = 0; result == 0 && i < members.count; i++) {
        result = memrt__holder_report_add(report, members.rows[i].node);
    }
    memrt__members_end(&members);
    return result;
}

/// Count a reference to the queried object. Callback of memrt__frame_visit.
static int count_if_queried(PyObject *object, void *context)
{
    query_t *query = context;
    query->caller_references += object == query->object;
    return 0;
}

/// Count the references of the caller's own frames to the queried object. Where the interpreter
/// hides operands, the caller's count stays.
static void count_caller_references(const memrt_graph_t *graph, query_t *query)
{
    if (!memrt__frame_shows_operands) {
        return;
    }
    query->caller_references = 0;
    for (uint32_t i = 0; i < graph->roots; i++) {
        if (graph->nodes[i].kind == MEMRT_NODE_OWN) {
            (void)memrt__frame_visit((PyFrameObject *)graph->nodes[i].object, count_if_queried,
                                     query);
        }
    }
}

static PyObject *report_holders(memrt_graph_t *graph, void *context)
{
    query_t *query = context;
    memrt_report_t report;
    if (memrt__holder_report_begin(&report, graph, OBJECTS_MOST) < 0) {
        return NULL;
    }
    count_caller_references(graph, query);
    report.queried = query->object;
    report.queried_counts = query->caller_references;
    PyObject *holders =
        add_members(&report, query->key) == 0 ? memrt__holder_report_make(&report) : NULL;
    PyObject *meminfo =
        holders != NULL ? memrt__holder_report_meminfo(query->mi, query->held_references) : NULL;
    uint32_t left_out = report.left_out;
    memrt__holder_report_end(&report);
    if (meminfo == NULL) {
        Py_XDECREF(holders);
        return NULL;
    }
    return Py_BuildValue("(NNI)", meminfo, holders, (unsigned)left_out);
}

/// Find the holders of a buffer. With METH_FASTCALL, only the frames of the caller refer to the
/// arguments, so no tuple counts as a holder.
static PyObject *find_holders(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 3 && count != 4) {
        PyErr_Format(PyExc_TypeError, "find_holders() takes 3 or 4 arguments (%zd given)", count);
        return NULL;
    }
    query_t query = {.object = args[0],
                     .address = count == 4 ? args[3] : NULL,
                     .caller_references = PyLong_AsSsize_t(args[1])};
    int frames = (int)PyLong_AsLong(args[2]);
    if (PyErr_Occurred() || resolve_query(&query) < 0) {
        return NULL;
    }
    PyObject *result = memrt__object_graph_query(query.object, frames, report_holders, &query);
    if (query.held_references) {
        memrt__api()->release(query.mi);
    }
    return result;
}

static PyObject *list_frame_variables(PyObject *module, PyObject *frame)
{
    (void)module;
    if (!PyFrame_Check(frame)) {
        PyErr_Format(PyExc_TypeError, "expected a frame, got %.200s", Py_TYPE(frame)->tp_name);
        return NULL;
    }
    return memrt__need_gil() == 0 ? memrt__frame_locals((PyFrameObject *)frame) : NULL;
}

static PyObject *get_graph_steps(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLongLong(memrt__object_graph_steps());
}

PyMethodDef memrt__holders_methods[] = {
    {"find_holders", (PyCFunction)(void (*)(void))find_holders, METH_FASTCALL,
     "find_holders(object, own, frames[, address]) -> tuple\n\n"
     "Find the holders of the buffer behind `object`, or of the tracked buffer at an address.\n"
     "Return the MemInfo, the objects that keep the buffer alive with their referrers (see\n"
     "holder_report.h), and the number of objects left out. The innermost `frames` frames are not\n"
     "searched. These have `own` references to `object`; since Python 3.14, which borrows some\n"
     "arguments, the references are counted instead."},
    {"frame_variables", list_frame_variables, METH_O,
     "frame_variables(frame) -> list of pairs\n\n"
     "Return names and values of the variables of a frame, with cells as cells. The frame\n"
     "keeps no dict of the variables."},
    {"graph_steps", get_graph_steps, METH_NOARGS,
     "graph_steps() -> int\n\n"
     "Return how many objects and references the last search of the object graph visited."},
    {NULL, NULL, 0, NULL},
};
