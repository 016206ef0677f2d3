#ifndef MEMRT_BINDINGS_OBSERVE_REFERENCE_H
#define MEMRT_BINDINGS_OBSERVE_REFERENCE_H

#include "observe/object_graph.h"

/// Classify references between nodes of an open object graph: the referring object, whether the
/// reference is a link of a chain, and the path from a root.

/// Return the node that a reference belongs to. A DummyArray of as_strided may keep its attributes
/// in a dict. References from that dict count as references of the DummyArray.
uint32_t memrt__reference_source(const memrt_graph_t *graph, uint32_t from);

/// Return whether a reference is the link of a chain of labelled nodes, not a reference of the
/// program. An array of objects may be in a chain and contain a view of itself.
int memrt__reference_is_link(const memrt_graph_t *graph, uint32_t from, uint32_t to);

/// Path from a node up to a root.
typedef struct memrt_way {
    uint32_t steps; ///< objects on the path, including the node; 0: not measured yet
    uint32_t last;  ///< last node of the path
} memrt_way_t;

typedef struct memrt_paths {
    memrt_graph_t *graph;
    memrt_way_t *ways; ///< indexed by node
} memrt_paths_t;

/// Begin path lookups over a graph. Call memrt__paths_end() in each case. -1 with MemoryError.
int memrt__paths_begin(memrt_paths_t *paths, memrt_graph_t *graph);
void memrt__paths_end(memrt_paths_t *paths);

/// Return a new tuple of the objects from a node up to a root: at most 12, the last of which is the
/// end of the path. `steps` gets the full length. The lookups of all paths together take one step
/// per node.
/// Failure: NULL with an exception, or without one if interrupted.
PyObject *memrt__path_up(memrt_paths_t *paths, uint32_t node, Py_ssize_t *steps);

#endif
