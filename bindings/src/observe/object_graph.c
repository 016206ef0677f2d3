/// Breadth-first walk over all Python objects, with the cycle collector disabled. Each object is a
/// node in an array, and a hash table maps object addresses to nodes.

#include "observe/object_graph.h"

#include <frameobject.h> /* PyFrame_GetBack, which Python.h of 3.10 lacks */

#include "core/owner.h"
#include "observe/base_chain.h"
#include "support/free_threading.h"

#define FIRST_NODES 4096u
#define STEPS_BETWEEN_SIGNALS 8192u

static uint64_t last_steps;

uint64_t memrt__object_graph_steps(void)
{
    return last_steps;
}

int memrt__object_graph_step(memrt_graph_t *graph)
{
    if (++graph->steps % STEPS_BETWEEN_SIGNALS == 0 && PyOS_InterruptOccurred()) {
        graph->interrupted = 1;
    }
    return graph->interrupted;
}

/* --- The table of nodes. --- */

static size_t hash_pointer(const memrt_graph_t *graph, const void *pointer)
{
    uint64_t hash = (uint64_t)(uintptr_t)pointer * MEMRT_HASH_FACTOR;
    return (size_t)(hash >> 20) & (graph->slot_count - 1);
}

/// Return the slot with the index of an object, or the empty slot for it.
static uint32_t *find_slot(const memrt_graph_t *graph, const void *pointer)
{
    size_t slot = hash_pointer(graph, pointer);
    while (graph->slots[slot] != 0 && graph->nodes[graph->slots[slot] - 1].object != pointer) {
        slot = (slot + 1) & (graph->slot_count - 1);
    }
    return &graph->slots[slot];
}

uint32_t memrt__object_graph_find(const memrt_graph_t *graph, PyObject *object)
{
    return *find_slot(graph, object) - 1; /* 0 - 1 is MEMRT_GRAPH_NONE */
}

/// Make room for one more node, with at most half of the slots taken. -1 with MemoryError, or if
/// interrupted.
static int reserve_node(memrt_graph_t *graph)
{
    if (graph->count < graph->capacity) {
        return 0;
    }
    size_t capacity = graph->capacity == 0 ? FIRST_NODES : (size_t)graph->capacity * 2;
    if (capacity > MEMRT_GRAPH_MOST) { /* GCOV_EXCL_BR_LINE: a billion objects need 24 GiB */
        PyErr_NoMemory();
        return -1;
    }
    memrt_graph_node_t *nodes = PyMem_RawRealloc(graph->nodes, capacity * sizeof(*nodes));
    graph->nodes = nodes != NULL ? nodes : graph->nodes;
    uint32_t *slots = PyMem_RawCalloc(capacity * 2, sizeof(*slots));
    if (nodes == NULL || slots == NULL) {
        PyMem_RawFree(slots);
        PyErr_NoMemory();
        return -1;
    }
    PyMem_RawFree(graph->slots);
    graph->slots = slots;
    graph->slot_count = capacity * 2;
    graph->capacity = (uint32_t)capacity;
    for (uint32_t i = 0; i < graph->count; i++) {
        *find_slot(graph, nodes[i].object) = i + 1;
        if (memrt__object_graph_step(graph)) {
            return -1;
        }
    }
    return 0;
}

/// Add an object unless the graph has it already. Returns the index of the node, or
/// MEMRT_GRAPH_NONE with MemoryError or if interrupted.
static uint32_t add_node(memrt_graph_t *graph, void *object, memrt_node_kind_t kind,
                         uint32_t parent)
{
    if (reserve_node(graph) < 0) {
        return MEMRT_GRAPH_NONE;
    }
    uint32_t *slot = find_slot(graph, object);
    if (*slot == 0) {
        graph->nodes[graph->count] =
            (memrt_graph_node_t){.object = object, .parent = parent, .kind = kind & 3};
        *slot = ++graph->count;
    }
    return *slot - 1;
}

/* --- The walk. --- */

typedef struct step {
    memrt_graph_t *graph;
    uint32_t from;
} step_t;

/// Maximum number of ancestors that the check for a cycle visits.
#define ANCESTORS 64

/// Set the parent of a node that was added without a path from a root. A node that is its own
/// ancestor on the new path gets no parent.
static void set_parent(memrt_graph_t *graph, uint32_t index, uint32_t parent)
{
    uint32_t above = parent;
    for (int i = 0; i < ANCESTORS && above != MEMRT_GRAPH_NONE && above != index; i++) {
        above = graph->nodes[above].parent;
    }
    if (above == MEMRT_GRAPH_NONE) {
        graph->nodes[index].parent = parent;
    }
}

/// Add an object that a node refers to. Callback of memrt__referents_visit.
static int add_referent(PyObject *object, void *context)
{
    const step_t *step = context;
    memrt_graph_t *graph = step->graph;
    if (memrt__object_graph_step(graph)) {
        return -1;
    }
    if (!memrt__referents_is_node(object)) {
        return 0;
    }
    uint32_t before = graph->count;
    uint32_t index = add_node(graph, object, MEMRT_NODE_OBJECT, step->from);
    if (index < before && index >= graph->roots && graph->nodes[index].parent == MEMRT_GRAPH_NONE) {
        set_parent(graph, index, step->from);
    }
    return index == MEMRT_GRAPH_NONE ? -1 : 0;
}

/// Add the owner of a MemInfo as a node of its own, since several objects may hold the same
/// MemInfo.
static int add_owner(memrt_graph_t *graph, const memrt_graph_node_t *node)
{
    if (node->kind != MEMRT_NODE_OBJECT || !memrt__link_maybe(node->object)) {
        return 0;
    }
    const memrt_meminfo_t *mi = memrt__link_meminfo(node->object);
    memrt_owner_t *owner = mi != NULL ? memrt__owner_of(mi) : NULL;
    return owner != NULL &&
                   add_node(graph, owner, MEMRT_NODE_OWNER, graph->reached) == MEMRT_GRAPH_NONE
               ? -1
               : 0;
}

/// Follow the references of all nodes, including the nodes that this adds. -1 with an exception, or
/// if interrupted.
static int follow_references(memrt_graph_t *graph)
{
    for (; graph->reached < graph->count; graph->reached++) {
        step_t step = {graph, graph->reached};
        memrt_graph_node_t node = graph->nodes[graph->reached];
        if (memrt__object_graph_step(graph) || add_owner(graph, &node) < 0 ||
            memrt__referents_visit(node.object, node.kind, add_referent, &step) != 0) {
            return -1;
        }
    }
    return 0;
}

/* --- The roots. --- */

static int add_frame(memrt_graph_t *graph, PyFrameObject *frame, int is_own)
{
    memrt_node_kind_t kind = is_own ? MEMRT_NODE_OWN : MEMRT_NODE_FRAME;
    if (PyList_Append(graph->frames, (PyObject *)frame) < 0) {
        return -1;
    }
    return add_node(graph, frame, kind, MEMRT_GRAPH_NONE) == MEMRT_GRAPH_NONE ? -1 : 0;
}

/// Add the frames of a thread; the innermost `own_frames` frames are not searched.
static int add_thread_frames(memrt_graph_t *graph, PyThreadState *thread, int own_frames)
{
    PyFrameObject *frame = PyThreadState_GetFrame(thread);
    int result = 0;
    while (frame != NULL && result == 0) {
        result = add_frame(graph, frame, own_frames-- > 0);
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame); /* the list holds another reference */
        frame = back;
    }
    Py_XDECREF(frame);
    /* A failure to create a frame looks like the end of the stack. */
    return PyErr_Occurred() ? -1 : result;
}

static int add_all_frames(memrt_graph_t *graph, int own_frames)
{
    PyThreadState *current = PyThreadState_Get();
    graph->frames = PyList_New(0);
    int result = graph->frames != NULL ? add_thread_frames(graph, current, own_frames) : -1;
    PyThreadState *thread = PyInterpreterState_ThreadHead(PyInterpreterState_Main());
    for (; thread != NULL && result == 0; thread = PyThreadState_Next(thread)) {
        result = thread != current ? add_thread_frames(graph, thread, 0) : 0;
    }
    return result;
}

static int add_module(memrt_graph_t *graph, PyObject *module)
{
    uint32_t index = add_node(graph, module, MEMRT_NODE_OBJECT, MEMRT_GRAPH_NONE);
    PyObject *globals = PyModule_GetDict(module);
    return index == MEMRT_GRAPH_NONE ||
                   add_node(graph, globals, MEMRT_NODE_OBJECT, index) == MEMRT_GRAPH_NONE
               ? -1
               : 0;
}

static int add_modules(memrt_graph_t *graph)
{
    PyObject *modules = PyImport_GetModuleDict(), *module;
    Py_ssize_t place = 0;
    /* GCOV_EXCL_BR_START: the interpreter's own reference is always a dict */
    while (PyDict_Check(modules) && PyDict_Next(modules, &place, NULL, &module)) {
        /* GCOV_EXCL_BR_STOP */
        if (PyModule_Check(module) && add_module(graph, module) < 0) {
            return -1;
        }
    }
    return 0;
}

static int add_object(memrt_graph_t *graph, PyObject *object)
{
    return add_node(graph, object, MEMRT_NODE_OBJECT, MEMRT_GRAPH_NONE) == MEMRT_GRAPH_NONE ||
                   follow_references(graph) < 0
               ? -1
               : 0;
}

/// Add tracked objects that no root leads to: objects held only by C code, and garbage.
static int add_tracked_objects(memrt_graph_t *graph, PyObject *tracked)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tracked); i++) {
        PyObject *object = PyList_GET_ITEM(tracked, i);
        /* GCOV_EXCL_BR_START: the list `frames` is newer than the list `tracked` */
        if (object != graph->frames && add_object(graph, object) < 0) {
            /* GCOV_EXCL_BR_STOP */
            return -1;
        }
    }
    return 0;
}

static PyObject *list_tracked_objects(void)
{
    PyObject *gc = PyImport_ImportModule("gc");
    /* CPython's cache of attributes keeps the strings of its lookups, so use one string. */
    PyObject *name = gc != NULL ? PyUnicode_InternFromString("get_objects") : NULL;
    PyObject *tracked = name != NULL ? PyObject_CallMethodNoArgs(gc, name) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(gc);
    if (tracked != NULL && !PyList_CheckExact(tracked)) {
        PyErr_SetString(PyExc_RuntimeError,
                        "gc.get_objects() was replaced by a function that returns no list");
        Py_CLEAR(tracked);
    }
    return tracked;
}

/// Find all objects. The list of tracked objects refers to everything, so it is freed before
/// reference counts are read.
static int find_objects(memrt_graph_t *graph, int own_frames)
{
    PyObject *tracked = list_tracked_objects();
    if (tracked == NULL || add_all_frames(graph, own_frames) < 0 || add_modules(graph) < 0) {
        Py_XDECREF(tracked);
        return -1;
    }
    graph->roots = graph->count;
    int result = follow_references(graph) < 0 || add_tracked_objects(graph, tracked) < 0 ? -1 : 0;
    Py_DECREF(tracked);
    return result;
}

static int open_graph(memrt_graph_t *graph, PyObject *known, int own_frames)
{
    *graph = (memrt_graph_t){0};
    graph->collector_was_on = PyGC_Disable();
    return find_objects(graph, own_frames) < 0 || (known != NULL && add_object(graph, known) < 0)
               ? -1
               : 0;
}

static void close_graph(memrt_graph_t *graph)
{
    last_steps = graph->steps;
    PyMem_RawFree(graph->nodes);
    PyMem_RawFree(graph->slots);
    if (graph->collector_was_on) {
        PyGC_Enable();
    }
    Py_CLEAR(graph->frames);
}

PyObject *memrt__object_graph_query(PyObject *known, int own_frames, memrt_graph_query_fn query,
                                    void *context)
{
    if (memrt__need_gil() < 0) {
        return NULL;
    }
    for (;;) {
        memrt_graph_t graph;
        PyObject *answer =
            open_graph(&graph, known, own_frames) == 0 ? query(&graph, context) : NULL;
        close_graph(&graph);
        if (!graph.interrupted) {
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

/* --- References to labelled nodes. --- */

typedef struct edge_walk {
    step_t step;
    memrt_graph_edge_fn edge;
    void *context;
} edge_walk_t;

/// Report a reference if its target is labelled. Callback of memrt__referents_visit.
static int report_edge(PyObject *object, void *context)
{
    const edge_walk_t *walk = context;
    memrt_graph_t *graph = walk->step.graph;
    if (memrt__object_graph_step(graph)) {
        return -1;
    }
    uint32_t to =
        memrt__link_maybe(object) ? memrt__object_graph_find(graph, object) : MEMRT_GRAPH_NONE;
    if (to == MEMRT_GRAPH_NONE || graph->nodes[to].label == 0) {
        return 0;
    }
    return walk->edge(walk->step.from, to, walk->context);
}

int memrt__object_graph_edges(memrt_graph_t *graph, memrt_graph_edge_fn edge, void *context)
{
    edge_walk_t each = {{graph, 0}, edge, context};
    for (; each.step.from < graph->count; each.step.from++) {
        const memrt_graph_node_t *node = &graph->nodes[each.step.from];
        if (memrt__object_graph_step(graph) ||
            memrt__referents_visit(node->object, node->kind, report_edge, &each) != 0) {
            return -1;
        }
    }
    return 0;
}
