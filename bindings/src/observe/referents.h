#ifndef MEMRT_BINDINGS_OBSERVE_REFERENTS_H
#define MEMRT_BINDINGS_OBSERVE_REFERENTS_H

#include "observe/base_chain.h"
#include "support/binding.h"

/// Kinds of nodes of the object graph, and the objects that a node refers to. Runs no Python code
/// and changes no reference count.

typedef enum memrt_node_kind {
    MEMRT_NODE_OBJECT,
    MEMRT_NODE_FRAME, ///< a frame of a thread that runs now
    MEMRT_NODE_OWNER, ///< memrt_owner_t that keeps the memory of a wrapped MemInfo alive; not a
                      ///< Python object
    MEMRT_NODE_OWN,   ///< a frame of memrt itself, whose variables are skipped
} memrt_node_kind_t;

/// Return whether the references of an object may be traversed. An untracked object may be
/// incomplete. Untracked dicts and tuples are safe: the collector skips them while no element can
/// be part of a cycle.
static inline int memrt__referents_can_traverse(PyObject *object)
{
    return PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HAVE_GC) &&
           (PyObject_GC_IsTracked(object) || PyDict_CheckExact(object) ||
            PyTuple_CheckExact(object));
}

/// Return whether an object becomes a node: a traversable object or a link of a chain.
static inline int memrt__referents_is_node(PyObject *object)
{
    return memrt__referents_can_traverse(object) || memrt__link_maybe(object);
}

/// Visit the objects that a node refers to: references that the cycle collector sees, variables of
/// running functions, and bases and elements of arrays. Returns 0, or the first result of `visit`
/// that is not 0.
int memrt__referents_visit(PyObject *object, memrt_node_kind_t kind, visitproc visit, void *arg);

#endif
