#include "observe/reference.h"

#include "observe/base_chain.h"

#define PATH_MAX_STEPS 12

uint32_t memrt__reference_source(const memrt_graph_t *graph, uint32_t from)
{
    const memrt_graph_node_t *dict = &graph->nodes[from];
    if (dict->kind == MEMRT_NODE_OBJECT && PyDict_CheckExact(dict->object) &&
        dict->parent != MEMRT_GRAPH_NONE && graph->nodes[dict->parent].label != 0 &&
        memrt__link_of(graph->nodes[dict->parent].object) == MEMRT_LINK_STRIDES) {
        return dict->parent;
    }
    return from;
}

int memrt__reference_is_link(const memrt_graph_t *graph, uint32_t from, uint32_t to)
{
    const memrt_graph_node_t *source = &graph->nodes[from];
    return source->label != 0 && source->kind == MEMRT_NODE_OBJECT &&
           memrt__link_next(source->object) == graph->nodes[to].object;
}

/* --- Paths. --- */

int memrt__paths_begin(memrt_paths_t *paths, memrt_graph_t *graph)
{
    paths->graph = graph;
    paths->ways = PyMem_RawCalloc((size_t)graph->count + 1, sizeof(*paths->ways));
    if (paths->ways == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

void memrt__paths_end(memrt_paths_t *paths)
{
    PyMem_RawFree(paths->ways);
}

/// Return the next object on the path up, skipping owners; MEMRT_GRAPH_NONE at the end.
static uint32_t get_parent_object(const memrt_graph_t *graph, uint32_t node)
{
    do {
        node = graph->nodes[node].parent;
    } while (node != MEMRT_GRAPH_NONE && graph->nodes[node].kind == MEMRT_NODE_OWNER);
    return node;
}

/// Return the object of a node. For an owner of wrapped memory, the MemInfo object is the referrer.
static uint32_t get_node_object(const memrt_graph_t *graph, uint32_t node)
{
    return graph->nodes[node].kind == MEMRT_NODE_OWNER ? get_parent_object(graph, node) : node;
}

/// Measure the path up from a node, and store the result for each node on the path. All
/// measurements together take one step per node. -1 if interrupted.
static int measure_path(memrt_paths_t *paths, uint32_t node, memrt_way_t *out)
{
    memrt_graph_t *graph = paths->graph;
    memrt_way_t *ways = paths->ways, way = {0, node};
    uint32_t steps = 0, at = node;
    for (; at != MEMRT_GRAPH_NONE && ways[at].steps == 0; at = get_parent_object(graph, at)) {
        way.last = at;
        steps++;
        if (memrt__object_graph_step(graph)) {
            return -1;
        }
    }
    if (at != MEMRT_GRAPH_NONE) {
        way = ways[at];
    }
    uint32_t known = way.steps;
    for (at = node; steps > 0; at = get_parent_object(graph, at), steps--) {
        ways[at] = (memrt_way_t){known + steps, way.last};
    }
    *out = ways[node];
    return 0;
}

/// Return the objects of a path: the first steps, and as last object the end of the path.
static PyObject *build_path(const memrt_graph_t *graph, uint32_t node, const memrt_way_t *way)
{
    Py_ssize_t length = way->steps < PATH_MAX_STEPS ? way->steps : PATH_MAX_STEPS;
    PyObject *path = PyTuple_New(length);
    for (Py_ssize_t i = 0; path != NULL && i < length; i++) {
        uint32_t step = i == length - 1 ? way->last : node;
        PyTuple_SET_ITEM(path, i, Py_NewRef(graph->nodes[step].object));
        node = get_parent_object(graph, node);
    }
    return path;
}

PyObject *memrt__path_up(memrt_paths_t *paths, uint32_t node, Py_ssize_t *steps)
{
    uint32_t from = get_node_object(paths->graph, node);
    memrt_way_t way;
    if (measure_path(paths, from, &way) < 0) {
        return NULL;
    }
    *steps = (Py_ssize_t)way.steps;
    return build_path(paths->graph, from, &way);
}
