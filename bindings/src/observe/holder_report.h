#ifndef MEMRT_BINDINGS_OBSERVE_HOLDER_REPORT_H
#define MEMRT_BINDINGS_OBSERVE_HOLDER_REPORT_H

#include "observe/object_graph.h"

/// Report the objects that keep buffers alive, and their referrers, as Python objects. The Python
/// package finds names for the objects. The results hold references, so the package must drop them
/// soon.

/// Objects to report. The label of an object is its index in `nodes`, from 1.
typedef struct memrt_report {
    memrt_graph_t *graph;
    uint32_t *nodes;
    uint32_t *levels; ///< links from each object to the end of its chain
    uint32_t count;
    uint32_t room;     ///< maximum number of objects; the outermost objects of chains are left out
    uint32_t left_out; ///< number of objects left out
    uint32_t *stack;   ///< nodes of a chain that is being added
    size_t stack_size;
    PyObject *queried; ///< object of the query, to which the query itself has references, or NULL
    Py_ssize_t queried_counts; ///< number of these references, which the report subtracts
} memrt_report_t;

/// Begin a report with room for `room` objects. -1 with MemoryError.
int memrt__holder_report_begin(memrt_report_t *report, memrt_graph_t *graph, uint32_t room);
void memrt__holder_report_end(memrt_report_t *report);

/// Add an object and the rest of its chain to the report. Objects are left out if they exceed the
/// room, or have more links to the end of the chain than a tree can show. -1 with MemoryError, or
/// if interrupted.
int memrt__holder_report_add(memrt_report_t *report, uint32_t node);

/// Return a new tuple of two lists. Objects are (object, link, references, references found,
/// references by objects that were left out, bytes addressed). References are (index of the object,
/// index of the referring object or -1, count, path or None, steps).
///
/// A path runs from the referring object up to a root. A long path has as many of the first objects
/// as fit, and the last object. NULL with an exception, or without one as in memrt_graph_query_fn.
PyObject *memrt__holder_report_make(memrt_report_t *report);

/// Return a new tuple of a MemInfo tuple and a list of its named references. The MemInfo tuple is
/// (address, size, references, kind, policy, name, site number). Each named reference is (name,
/// kind, count, thread, age_ns). `taken`: references held by the caller, which are not counted.
PyObject *memrt__holder_report_meminfo(memrt_meminfo_t *mi, size_t taken);

#endif
