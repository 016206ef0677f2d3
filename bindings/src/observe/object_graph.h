#ifndef MEMRT_BINDINGS_OBSERVE_OBJECT_GRAPH_H
#define MEMRT_BINDINGS_OBSERVE_OBJECT_GRAPH_H

#include "observe/referents.h"

#include <stdint.h>

/// Walk the object graph: all reachable Python objects and the references between them. The graph
/// extends the cycle collector's view: variables of running functions, dicts and tuples that the
/// collector does not track, and arrays with their bases and elements.
///
/// While the graph is open, no Python code runs and no reference count changes, so borrowed
/// pointers stay valid.

/// An object with the object through which the walk reached it first. The walk starts at variables
/// of functions and globals of modules, so the path over parents has the fewest steps.
typedef struct memrt_graph_node {
    PyObject *object;        ///< borrowed; a memrt_owner_t for MEMRT_NODE_OWNER
    uint32_t parent;         ///< index of a node, or MEMRT_GRAPH_NONE
    unsigned int kind : 2;   ///< a memrt_node_kind_t
    unsigned int label : 30; ///< for use by the caller; initially 0
} memrt_graph_node_t;

#define MEMRT_GRAPH_NONE UINT32_MAX
#define MEMRT_GRAPH_MOST ((uint32_t)1 << 30) ///< maximum number of objects in the graph
#define MEMRT_LABEL_MOST (MEMRT_GRAPH_MOST - 1)

typedef struct memrt_graph {
    memrt_graph_node_t *nodes;
    uint32_t count, capacity;
    uint32_t roots;   ///< leading nodes that are roots: frames, and modules with their globals
    uint32_t reached; ///< leading nodes whose references were followed
    uint32_t *slots;  ///< open addressing: index of a node plus 1, or 0
    size_t slot_count;
    PyObject *frames; ///< list of the frames of all threads
    int collector_was_on;
    int interrupted; ///< a SIGINT arrived, which must be raised again
    uint64_t steps;  ///< objects and references visited
} memrt_graph_t;

/// Callback over an open object graph, which is closed after the callback returns. Must run no
/// Python code. Returns a new reference, or NULL with an exception. NULL without an exception means
/// that a function of this header was interrupted.
typedef PyObject *(*memrt_graph_query_fn)(memrt_graph_t *graph, void *context);

/// Open the object graph and call `query`. `known`, or NULL, is an object that the graph must
/// contain, even if only this call refers to it. The innermost `own_frames` frames of the calling
/// thread are not searched. After a Ctrl-C that does not end the program, the graph is rebuilt and
/// `query` called again.
PyObject *memrt__object_graph_query(PyObject *known, int own_frames, memrt_graph_query_fn query,
                                    void *context);

/// Count one step of a loop over objects or references. Returns whether SIGINT arrived; the caller
/// must then return -1 at once. The Python signal handler runs after the graph is closed, since the
/// handler could change any object.
int memrt__object_graph_step(memrt_graph_t *graph);

/// Return the number of steps taken in the most recently closed graph.
uint64_t memrt__object_graph_steps(void);

/// Return the index of the node of an object, or MEMRT_GRAPH_NONE.
uint32_t memrt__object_graph_find(const memrt_graph_t *graph, PyObject *object);

/// Callback for a reference to a node with a label other than 0. Called once per reference, so
/// several times for an object with several. Returns -1 to stop.
typedef int (*memrt_graph_edge_fn)(uint32_t from, uint32_t to, void *context);

/// Visit all references to nodes with labels. Returns -1 if stopped or interrupted, without an
/// exception.
int memrt__object_graph_edges(memrt_graph_t *graph, memrt_graph_edge_fn edge, void *context);

#endif
