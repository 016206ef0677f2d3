#ifndef MEMRT_REPORT_H
#define MEMRT_REPORT_H

#include "heap.h"

/// Objects that keep buffers alive, and what refers to them, as Python objects for the package,
/// which finds names for them. These hold references of their own: to be dropped soon.

/// Objects to be reported, with a label each: their place in `nodes`, from 1.
typedef struct memrt_report {
    memrt_heap_t *heap;
    uint32_t *nodes;
    uint32_t count;
    uint32_t room;     ///< objects there may be; further ones at the ends of chains are left out
    uint32_t left_out; ///< how many were
    PyObject *asked;   ///< an object that the caller's call refers to, or NULL
    Py_ssize_t asked_counts; ///< how often
} memrt_report_t;

/// A report with room for so many objects. -1 with MemoryError.
int memrt__report_begin(memrt_report_t *report, memrt_heap_t *heap, uint32_t room);
void memrt__report_end(memrt_report_t *report);

/// Have an object reported, and the chain of what it takes its memory from.
void memrt__report_add(memrt_report_t *report, uint32_t node);

/// New tuple of two lists: of objects (object, link, references, references found, references by
/// objects that were left out, bytes addressed), and of references (place of the object, place of
/// the referring object or -1, how many, path or None, steps). A path goes from the referring
/// object on to where it can be reached from; a long one has its last object and as many as there
/// is room for before. NULL with an exception, or without one as memrt_heap_ask_fn.
PyObject *memrt__report_make(memrt_report_t *report);

/// MemInfo (address, size, references, kind, policy, name, number of its site) and its names (name,
/// kind, count, thread, age_ns), as a new tuple of a tuple and a list. `taken`: references that the
/// caller has.
PyObject *memrt__report_meminfo(memrt_meminfo_t *mi, size_t taken);

#endif
