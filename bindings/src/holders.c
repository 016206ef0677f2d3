#include "holders.h"

#include "chain.h"
#include "errors.h"
#include "frame.h"
#include "meminfo.h"
#include "ndarray.h"
#include "report.h"

/// Objects that are told of one buffer, at most.
#define OBJECTS_MOST 1000

/// A buffer that somebody asks about.
typedef struct question {
    PyObject *asked;
    PyObject *address; ///< of its first byte; NULL: `asked` leads to it
    Py_ssize_t own;    ///< references to `asked` that the call has
    memrt_meminfo_t *mi;
    memrt_buffer_key_t key;
    size_t taken; ///< references to `mi` that the call has, 0 or 1
} question_t;

static int refuse(PyObject *object)
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

static int take(int result, question_t *out)
{
    out->taken = result == 0;
    return result;
}

/// The MemInfo at the end of a chain. That of a tiny block is made where there is none.
static int resolve_anchor(PyObject *anchor, question_t *out)
{
    memrt_link_t link = memrt__link_of(anchor);
    out->mi = memrt__link_meminfo(anchor);
    if (out->mi != NULL) {
        return 0;
    }
    if (link == MEMRT_LINK_BLOCK) {
        return take(memrt__block_meminfo(memrt__api(), (PyArrayObject *)anchor, &out->mi), out);
    }
    if (link == MEMRT_LINK_MEMINFO) {
        (void)memrt__meminfo_get((memrt_meminfo_object_t *)anchor);
        return -1;
    }
    int exports = memrt_exporter_check(anchor);
    if (exports <= 0) {
        return exports == 0 ? refuse(out->asked) : -1;
    }
    return take(memrt__exporter_meminfo(memrt__api(), anchor, &out->mi), out);
}

/// The live buffer whose first byte is at that address, as far as it is tracked or named.
static int resolve_address(question_t *question)
{
    void *data = PyLong_AsVoidPtr(question->address);
    if (data == NULL && PyErr_Occurred() != NULL) {
        return -1;
    }
    memrt_status_t status = memrt__api()->find(data, &question->mi);
    if (status != MEMRT_OK) {
        memrt__raise(status, "the buffer at %p", data);
        return -1;
    }
    return take(0, question);
}

static int resolve_object(question_t *question)
{
    PyObject *anchor = memrt_object_anchor(memrt__api(), question->asked);
    if (anchor == NULL) {
        return -1;
    }
    int result = resolve_anchor(anchor, question);
    Py_DECREF(anchor);
    return result;
}

static int resolve(question_t *question)
{
    int result = question->address != NULL ? resolve_address(question) : resolve_object(question);
    question->key = result == 0 ? memrt__meminfo_key(question->mi) : 0;
    return result;
}

static void add_all(memrt_report_t *report, memrt_buffer_key_t key)
{
    const memrt_heap_t *heap = report->heap;
    for (uint32_t i = 0; i < heap->count; i++) {
        const memrt_heap_node_t *node = &heap->nodes[i];
        if (node->kind == MEMRT_NODE_OBJECT && node->label == 0 &&
            memrt__link_maybe(node->object) && memrt__chain_key(node->object) == key) {
            memrt__report_add(report, i);
        }
    }
}

static PyObject *answer(memrt_heap_t *heap, void *context)
{
    question_t *question = context;
    memrt_report_t report;
    if (memrt__report_begin(&report, heap, OBJECTS_MOST) < 0) {
        return NULL;
    }
    report.asked = question->asked;
    report.asked_counts = question->own;
    add_all(&report, question->key);
    PyObject *told = memrt__report_make(&report);
    PyObject *meminfo = told != NULL ? memrt__report_meminfo(question->mi, question->taken) : NULL;
    uint32_t left_out = report.left_out;
    memrt__report_end(&report);
    if (meminfo == NULL) {
        Py_XDECREF(told);
        return NULL;
    }
    return Py_BuildValue("(NNI)", meminfo, told, (unsigned)left_out);
}

/// Its arguments come as they are, so that they are referred to by the caller's call alone.
static PyObject *find_holders(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 3 && count != 4) {
        PyErr_Format(PyExc_TypeError, "find_holders() takes 3 or 4 arguments (%zd given)", count);
        return NULL;
    }
    question_t question = {
        .asked = args[0], .address = count == 4 ? args[3] : NULL, .own = PyLong_AsSsize_t(args[1])};
    int frames = (int)PyLong_AsLong(args[2]);
    if (PyErr_Occurred() || resolve(&question) < 0) {
        return NULL;
    }
    PyObject *result = memrt__heap_ask(question.asked, frames, answer, &question);
    if (question.taken) {
        memrt__api()->release(question.mi);
    }
    return result;
}

static PyObject *frame_variables(PyObject *module, PyObject *frame)
{
    (void)module;
    if (!PyFrame_Check(frame)) {
        PyErr_Format(PyExc_TypeError, "expected a frame, got %.200s", Py_TYPE(frame)->tp_name);
        return NULL;
    }
    return memrt__frame_variables((PyFrameObject *)frame);
}

PyMethodDef memrt__holders_methods[] = {
    {"find_holders", (PyCFunction)(void (*)(void))find_holders, METH_FASTCALL,
     "find_holders(object, own, frames[, address]) -> tuple\n\n"
     "The MemInfo behind `object`, or of the tracked buffer at an address, the objects that keep "
     "it alive and what refers to them, see\n"
     "report.h. The caller has `own` references to `object`, and its innermost `frames` frames "
     "are\n"
     "not looked into."},
    {"frame_variables", frame_variables, METH_O,
     "frame_variables(frame) -> list of pairs\n\n"
     "Names and values of the variables of a frame, cells as cells, without making it keep a dict\n"
     "of them."},
    {NULL, NULL, 0, NULL},
};
