#ifndef MEMRT_HEAP_H
#define MEMRT_HEAP_H

#include "binding.h"

#include <stdint.h>

/// All Python objects that can be reached, and who refers to whom: what the cycle collector knows,
/// with what it does not: variables of running functions, dicts and tuples that it does not track,
/// arrays with their bases and elements. No code runs while a heap is open and no object's count of
/// references is changed, so that pointers may be borrowed.

/// An object and the one through which it was reached first: from the variables of functions and
/// the globals of modules, the fewest steps away.
typedef struct memrt_heap_node {
    PyObject *object;        ///< borrowed; a memrt_owner_t for MEMRT_NODE_OWNER
    uint32_t parent;         ///< index of a node, or MEMRT_HEAP_NONE
    unsigned int kind : 2;   ///< a memrt_node_kind_t
    unsigned int label : 30; ///< the user's; 0 at first
} memrt_heap_node_t;

typedef enum memrt_node_kind {
    MEMRT_NODE_OBJECT,
    MEMRT_NODE_FRAME, ///< a frame of a thread that runs now
    MEMRT_NODE_OWNER, ///< what keeps the memory of a wrapped MemInfo alive; no Python object
    MEMRT_NODE_OWN,   ///< a frame of memrt's own, which is not looked into
} memrt_node_kind_t;

#define MEMRT_HEAP_NONE UINT32_MAX
#define MEMRT_HEAP_MOST ((uint32_t)1 << 30) ///< more objects are not looked at

typedef struct memrt_heap {
    memrt_heap_node_t *nodes;
    uint32_t count, capacity;
    uint32_t roots;   ///< nodes from the start that have a name of their own
    uint32_t reached; ///< nodes whose references were followed
    uint32_t *slots;  ///< open addressing: index of a node plus 1, or 0
    size_t slot_count;
    PyObject *frames; ///< list of the frames of all threads
    int collector_was_on;
    int interrupted; ///< by SIGINT, which is to be raised again
} memrt_heap_t;

/// Asked of an open heap, which is closed when it returns. Must run no Python code. New reference,
/// or NULL with an exception, or without one where a call that it made was interrupted.
typedef PyObject *(*memrt_heap_ask_fn)(memrt_heap_t *heap, void *context);

/// Open the heap and ask. `known`, or NULL, is an object that is to be in it even if nothing refers
/// to it but the call. `own` is how many frames of the calling thread, from the innermost, are not
/// to be looked into. Where Ctrl-C is pressed meanwhile and the program goes on, it is asked
/// anew.
PyObject *memrt__heap_ask(PyObject *known, int own, memrt_heap_ask_fn ask, void *context);

/// The node of an object, or MEMRT_HEAP_NONE.
uint32_t memrt__heap_find(const memrt_heap_t *heap, PyObject *object);

/// Called for a reference to a node with a label other than 0; once for each if there are several
/// from one object. Returns -1 to stop.
typedef int (*memrt_heap_edge_fn)(uint32_t from, uint32_t to, void *context);

/// Visit all references to nodes with labels. -1: stopped, or interrupted, without an exception.
int memrt__heap_edges(memrt_heap_t *heap, memrt_heap_edge_fn edge, void *context);

#endif
