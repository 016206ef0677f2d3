#include "heap.h"

#include "chain.h"
#include "frame.h"
#include "meminfo.h"
#include "ndarray.h"
#include "owner.h"

#define FIRST_NODES 4096u
#define STEPS_BETWEEN_SIGNALS 8192u

/* --- The table of nodes. --- */

static size_t slot_of(const memrt_heap_t *heap, const void *pointer)
{
    uint64_t hash = (uint64_t)(uintptr_t)pointer * 0x9E3779B97F4A7C15u;
    return (size_t)(hash >> 20) & (heap->slot_count - 1);
}

/// The slot with the index of an object, or the empty one where it would be.
static uint32_t *lookup(const memrt_heap_t *heap, const void *pointer)
{
    size_t slot = slot_of(heap, pointer);
    while (heap->slots[slot] != 0 && heap->nodes[heap->slots[slot] - 1].object != pointer) {
        slot = (slot + 1) & (heap->slot_count - 1);
    }
    return &heap->slots[slot];
}

uint32_t memrt__heap_find(const memrt_heap_t *heap, PyObject *object)
{
    return *lookup(heap, object) - 1; /* 0 - 1 is MEMRT_HEAP_NONE */
}

/// Room for one node more, with at most half of the slots taken.
static int reserve(memrt_heap_t *heap)
{
    if (heap->count < heap->capacity) {
        return 0;
    }
    size_t capacity = heap->capacity == 0 ? FIRST_NODES : (size_t)heap->capacity * 2;
    if (capacity > MEMRT_HEAP_MOST) {
        PyErr_NoMemory();
        return -1;
    }
    memrt_heap_node_t *nodes = PyMem_RawRealloc(heap->nodes, capacity * sizeof(*nodes));
    heap->nodes = nodes != NULL ? nodes : heap->nodes;
    uint32_t *slots = PyMem_RawCalloc(capacity * 2, sizeof(*slots));
    if (nodes == NULL || slots == NULL) {
        PyMem_RawFree(slots);
        PyErr_NoMemory();
        return -1;
    }
    PyMem_RawFree(heap->slots);
    heap->slots = slots;
    heap->slot_count = capacity * 2;
    heap->capacity = (uint32_t)capacity;
    for (uint32_t i = 0; i < heap->count; i++) {
        *lookup(heap, nodes[i].object) = i + 1;
    }
    return 0;
}

/// Add an object unless it is there; the index of its node, or MEMRT_HEAP_NONE with MemoryError.
static uint32_t add(memrt_heap_t *heap, void *object, memrt_node_kind_t kind, uint32_t parent)
{
    if (reserve(heap) < 0) {
        return MEMRT_HEAP_NONE;
    }
    uint32_t *slot = lookup(heap, object);
    if (*slot == 0) {
        heap->nodes[heap->count] =
            (memrt_heap_node_t){.object = object, .parent = parent, .kind = kind & 3};
        *slot = ++heap->count;
    }
    return *slot - 1;
}

/* --- From one object to those that it refers to. --- */

/// Objects that the collector does not track may not be ready to be looked into, but for dicts and
/// tuples, which it leaves alone while nothing in them can be part of a cycle.
static int can_look_into(PyObject *object)
{
    return PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HAVE_GC) &&
           (PyObject_GC_IsTracked(object) || PyDict_CheckExact(object) ||
            PyTuple_CheckExact(object));
}

static int is_node(PyObject *object)
{
    return can_look_into(object) || memrt__link_maybe(object);
}

static int visit_elements(PyArrayObject *array, visitproc visit, void *arg)
{
    PyObject **elements = PyArray_DATA(array);
    npy_intp count = PyArray_SIZE(array);
    for (npy_intp i = 0; i < count; i++) {
        Py_VISIT(elements[i]);
    }
    return 0;
}

static int visit_array(PyArrayObject *array, visitproc visit, void *arg)
{
    Py_VISIT(PyArray_BASE(array));
    /* Who owns the elements has them one behind the other. */
    if (PyArray_TYPE(array) == NPY_OBJECT && PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA)) {
        return visit_elements(array, visit, arg);
    }
    return 0;
}

static int visit_references(const memrt_heap_node_t *node, visitproc visit, void *arg)
{
    PyObject *object = node->object;
    if (node->kind == MEMRT_NODE_OWN) {
        return 0;
    }
    if (node->kind == MEMRT_NODE_OWNER) {
        return memrt__owner_visit((memrt_owner_t *)object, visit, arg);
    }
    if (node->kind == MEMRT_NODE_FRAME) {
        return memrt__frame_visit((PyFrameObject *)object, visit, arg);
    }
    if (memrt__meminfo_check(object)) {
        return 0; /* what keeps its memory alive is a node of its own */
    }
    if (PyArray_Check(object)) {
        int result = visit_array((PyArrayObject *)object, visit, arg);
        if (result != 0) {
            return result;
        }
    }
    return can_look_into(object) ? Py_TYPE(object)->tp_traverse(object, visit, arg) : 0;
}

/* --- Reaching all. --- */

typedef struct step {
    memrt_heap_t *heap;
    uint32_t from;
} step_t;

/// How far up it is looked for a cycle, before a parent is given.
#define ANCESTORS 64

/// Give an object that was come upon without a way to it, when it was looked at, the way that is
/// known now; unless it is itself on that way.
static void give_parent(memrt_heap_t *heap, uint32_t index, uint32_t parent)
{
    uint32_t above = parent;
    for (int i = 0; i < ANCESTORS && above != MEMRT_HEAP_NONE && above != index; i++) {
        above = heap->nodes[above].parent;
    }
    if (above == MEMRT_HEAP_NONE) {
        heap->nodes[index].parent = parent;
    }
}

static int reach(PyObject *object, void *context)
{
    const step_t *step = context;
    memrt_heap_t *heap = step->heap;
    if (!is_node(object)) {
        return 0;
    }
    uint32_t before = heap->count;
    uint32_t index = add(heap, object, MEMRT_NODE_OBJECT, step->from);
    if (index < before && index >= heap->roots && heap->nodes[index].parent == MEMRT_HEAP_NONE) {
        give_parent(heap, index, step->from);
    }
    return index == MEMRT_HEAP_NONE ? -1 : 0;
}

/// Several objects may hold the one MemInfo that has the owner, so this is a node of its own.
static int reach_owner(memrt_heap_t *heap, const memrt_heap_node_t *node)
{
    if (node->kind != MEMRT_NODE_OBJECT || !memrt__link_maybe(node->object)) {
        return 0;
    }
    const memrt_meminfo_t *mi = memrt__link_meminfo(node->object);
    memrt_owner_t *owner = mi != NULL ? memrt__owner_of(mi) : NULL;
    return owner != NULL && add(heap, owner, MEMRT_NODE_OWNER, heap->reached) == MEMRT_HEAP_NONE
               ? -1
               : 0;
}

/// Whether Ctrl-C was pressed. It is answered when the heap is closed, as that may run code.
static int is_interrupted(memrt_heap_t *heap, uint32_t steps)
{
    if (steps % STEPS_BETWEEN_SIGNALS == 0 && PyOS_InterruptOccurred()) {
        heap->interrupted = 1;
    }
    return heap->interrupted;
}

static int reach_all(memrt_heap_t *heap)
{
    for (; heap->reached < heap->count; heap->reached++) {
        step_t step = {heap, heap->reached};
        memrt_heap_node_t node = heap->nodes[heap->reached];
        if (is_interrupted(heap, heap->reached) || reach_owner(heap, &node) < 0 ||
            visit_references(&node, reach, &step) != 0) {
            return -1;
        }
    }
    return 0;
}

/* --- Where to begin. --- */

static int add_frame(memrt_heap_t *heap, PyFrameObject *frame, int is_own)
{
    memrt_node_kind_t kind = is_own ? MEMRT_NODE_OWN : MEMRT_NODE_FRAME;
    if (PyList_Append(heap->frames, (PyObject *)frame) < 0) {
        return -1;
    }
    return add(heap, frame, kind, MEMRT_HEAP_NONE) == MEMRT_HEAP_NONE ? -1 : 0;
}

static int add_frames_of(memrt_heap_t *heap, PyThreadState *thread, int own)
{
    PyFrameObject *frame = PyThreadState_GetFrame(thread);
    int result = 0;
    while (frame != NULL && result == 0) {
        result = add_frame(heap, frame, own-- > 0);
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame); /* the list has another reference */
        frame = back;
    }
    Py_XDECREF(frame);
    return PyErr_Occurred() ? -1 : result; /* a frame that could not be made looks like the last */
}

static int add_frames(memrt_heap_t *heap, int own)
{
    PyThreadState *mine = PyThreadState_Get();
    heap->frames = PyList_New(0);
    int result = heap->frames != NULL ? add_frames_of(heap, mine, own) : -1;
    PyThreadState *thread = PyInterpreterState_ThreadHead(PyInterpreterState_Main());
    for (; thread != NULL && result == 0; thread = PyThreadState_Next(thread)) {
        result = thread != mine ? add_frames_of(heap, thread, 0) : 0;
    }
    return result;
}

static int add_module(memrt_heap_t *heap, PyObject *module)
{
    uint32_t index = add(heap, module, MEMRT_NODE_OBJECT, MEMRT_HEAP_NONE);
    PyObject *globals = PyModule_GetDict(module);
    return index == MEMRT_HEAP_NONE ||
                   add(heap, globals, MEMRT_NODE_OBJECT, index) == MEMRT_HEAP_NONE
               ? -1
               : 0;
}

static int add_modules(memrt_heap_t *heap)
{
    PyObject *modules = PyImport_GetModuleDict(), *module;
    Py_ssize_t place = 0;
    while (PyDict_Check(modules) && PyDict_Next(modules, &place, NULL, &module)) {
        if (PyModule_Check(module) && add_module(heap, module) < 0) {
            return -1;
        }
    }
    return 0;
}

static int add_one(memrt_heap_t *heap, PyObject *object)
{
    return add(heap, object, MEMRT_NODE_OBJECT, MEMRT_HEAP_NONE) == MEMRT_HEAP_NONE ||
                   reach_all(heap) < 0
               ? -1
               : 0;
}

/// What the collector tracks and nothing above leads to: what only C code holds, and garbage.
static int add_tracked(memrt_heap_t *heap, PyObject *tracked)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tracked); i++) {
        PyObject *object = PyList_GET_ITEM(tracked, i);
        if (object != heap->frames && add_one(heap, object) < 0) {
            return -1;
        }
    }
    return 0;
}

static PyObject *list_tracked(void)
{
    PyObject *gc = PyImport_ImportModule("gc");
    PyObject *tracked = gc != NULL ? PyObject_CallMethod(gc, "get_objects", NULL) : NULL;
    Py_XDECREF(gc);
    if (tracked != NULL && !PyList_CheckExact(tracked)) {
        PyErr_SetString(PyExc_RuntimeError, "gc.get_objects() was replaced");
        Py_CLEAR(tracked);
    }
    return tracked;
}

/// The list, which holds everything, is gone before counts of references are read.
static int find_all(memrt_heap_t *heap, int own)
{
    PyObject *tracked = list_tracked();
    if (tracked == NULL || add_frames(heap, own) < 0 || add_modules(heap) < 0) {
        Py_XDECREF(tracked);
        return -1;
    }
    heap->roots = heap->count;
    int result = reach_all(heap) < 0 || add_tracked(heap, tracked) < 0 ? -1 : 0;
    Py_DECREF(tracked);
    return result;
}

static int open_heap(memrt_heap_t *heap, PyObject *known, int own)
{
    *heap = (memrt_heap_t){0};
#ifdef Py_GIL_DISABLED
    (void)known;
    (void)own;
    PyErr_SetString(PyExc_RuntimeError,
                    "who holds what can be told only where the GIL stops all other threads");
    return -1;
#else
    heap->collector_was_on = PyGC_Disable();
    return find_all(heap, own) < 0 || (known != NULL && add_one(heap, known) < 0) ? -1 : 0;
#endif
}

static void close_heap(memrt_heap_t *heap)
{
    PyMem_RawFree(heap->nodes);
    PyMem_RawFree(heap->slots);
    if (heap->collector_was_on) {
        PyGC_Enable();
    }
    Py_CLEAR(heap->frames);
}

PyObject *memrt__heap_ask(PyObject *known, int own, memrt_heap_ask_fn ask, void *context)
{
    for (;;) {
        memrt_heap_t heap;
        PyObject *answer = open_heap(&heap, known, own) == 0 ? ask(&heap, context) : NULL;
        close_heap(&heap);
        if (!heap.interrupted) {
            return answer;
        }
        Py_XDECREF(answer);
        PyErr_Clear();
        PyErr_SetInterrupt();
        if (PyErr_CheckSignals() < 0) {
            return NULL;
        }
    }
}

/* --- References to what has a label. --- */

typedef struct look {
    step_t step;
    memrt_heap_edge_fn edge;
    void *context;
} look_t;

static int look(PyObject *object, void *context)
{
    const look_t *look = context;
    const memrt_heap_t *heap = look->step.heap;
    uint32_t to = memrt__link_maybe(object) ? memrt__heap_find(heap, object) : MEMRT_HEAP_NONE;
    if (to == MEMRT_HEAP_NONE || heap->nodes[to].label == 0) {
        return 0;
    }
    return look->edge(look->step.from, to, look->context);
}

int memrt__heap_edges(memrt_heap_t *heap, memrt_heap_edge_fn edge, void *context)
{
    look_t each = {{heap, 0}, edge, context};
    for (; each.step.from < heap->count; each.step.from++) {
        if (is_interrupted(heap, each.step.from) ||
            visit_references(&heap->nodes[each.step.from], look, &each) != 0) {
            return -1;
        }
    }
    return 0;
}
