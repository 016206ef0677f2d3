#include "observe/retention.h"

#include <stdlib.h>

#include "observe/holder_report.h"
#include "observe/members.h"
#include "support/byte_ranges.h"

#define OBJECTS_MOST 100u    ///< maximum number of reported objects per buffer
#define RUNS_MOST (1u << 22) ///< maximum number of runs merged for a buffer
#define BUFFERS_MOST 10000   ///< maximum of the limit argument

/// Criteria of a query.
typedef struct criteria {
    size_t min_bytes; ///< minimum of wasted bytes
    double min_ratio; ///< minimum ratio of wasted bytes to bytes of the buffer
    Py_ssize_t limit; ///< maximum number of reported buffers
} criteria_t;

/// The objects that keep a buffer alive.
typedef struct group {
    const memrt_member_t *members;
    size_t count;
} group_t;

/// A buffer whose views cover only a part of its bytes.
typedef struct waste {
    group_t group;
    memrt_meminfo_t *mi;
    size_t viewed, wasted, views;
    int exact; ///< 0: more than RUNS_MOST runs, `viewed` is an upper bound
} waste_t;

typedef struct wastes {
    waste_t *rows;
    size_t count, capacity;
    size_t bytes; ///< wasted bytes of all rows
} wastes_t;

/* --- The viewed bytes of a buffer. --- */

/// Return the references to a member, without references from links of chains.
static Py_ssize_t count_free_references(const memrt_graph_t *graph, const memrt_member_t *member)
{
    return Py_REFCNT(graph->nodes[member->node].object) - (Py_ssize_t)member->links;
}

/// Return the MemInfo of a group. NULL for a tiny block, and if a reference exists outside of the
/// group.
static memrt_meminfo_t *find_group_meminfo(const memrt_graph_t *graph, const group_t *group)
{
    memrt_meminfo_t *mi = NULL;
    size_t known = 0;
    for (size_t i = 0; i < group->count; i++) {
        const memrt_member_t *member = &group->members[i];
        if (memrt__link_is_last(member->link)) {
            mi = memrt__link_meminfo(graph->nodes[member->node].object);
            known++;
        }
    }
    return mi != NULL && memrt__api()->refcount(mi) <= known ? mi : NULL;
}

/// Sum over the views of a buffer, as if no views overlapped.
typedef struct sum {
    size_t runs;
    int overlap; ///< some runs may overlap
} sum_t;

/// Add a view to the sum. Saturates on overflow.
static void add_view(const memrt_extent_t *extent, waste_t *waste, sum_t *sum)
{
    size_t bytes = memrt__byte_ranges_bytes(extent);
    sum->overlap |= waste->views++ != 0 || !memrt__byte_ranges_is_plain(extent);
    if (__builtin_add_overflow(waste->viewed, bytes, &waste->viewed) ||
        __builtin_add_overflow(sum->runs, memrt__byte_ranges_runs(extent), &sum->runs)) {
        sum->runs = waste->viewed = SIZE_MAX;
    }
}

/// Sum up the views. Returns 0 if a single view covers the whole buffer, or if a referenced member
/// is not a view.
static int sum_views(const memrt_graph_t *graph, const group_t *group, size_t size, waste_t *waste,
                     sum_t *sum)
{
    memrt_extent_t extent;
    for (size_t i = 0; i < group->count; i++) {
        const memrt_member_t *member = &group->members[i];
        if (count_free_references(graph, member) <= 0) {
            continue;
        }
        if (!memrt__byte_ranges_of(graph->nodes[member->node].object, &extent)) {
            return 0;
        }
        if (extent.nd == 0 && extent.run >= size) {
            return 0;
        }
        add_view(&extent, waste, sum);
    }
    return 1;
}

/// Compute the bytes covered by at least one view. -1 with MemoryError.
static int count_covered_bytes(const memrt_graph_t *graph, const group_t *group, size_t runs,
                               size_t *bytes)
{
    memrt_range_t *ranges = PyMem_RawCalloc(runs + 1, sizeof(*ranges));
    memrt_extent_t extent;
    size_t count = 0;
    if (ranges == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < group->count; i++) {
        const memrt_member_t *member = &group->members[i];
        if (count_free_references(graph, member) > 0 &&
            memrt__byte_ranges_of(graph->nodes[member->node].object, &extent)) {
            count += memrt__byte_ranges_ranges(&extent, ranges + count);
        }
    }
    *bytes = memrt__ranges_union(ranges, count);
    PyMem_RawFree(ranges);
    return 0;
}

static int is_reportable(const criteria_t *criteria, size_t wasted, size_t size)
{
    return wasted > 0 && wasted >= criteria->min_bytes &&
           (double)wasted >= criteria->min_ratio * (double)size;
}

/// Compute the waste of a buffer. Returns whether the criteria are met; -1 with MemoryError.
static int compute_waste(const memrt_graph_t *graph, const criteria_t *criteria,
                         const group_t *group, waste_t *out)
{
    sum_t sum = {0};
    *out = (waste_t){.group = *group, .mi = find_group_meminfo(graph, group), .exact = 1};
    size_t size = out->mi != NULL ? memrt__api()->size(out->mi) : 0;
    if (size < criteria->min_bytes || !sum_views(graph, group, size, out, &sum) ||
        out->views == 0) {
        return 0;
    }
    if (sum.overlap && sum.runs > RUNS_MOST) {
        out->exact = 0;
        out->viewed = out->viewed < size ? out->viewed : size;
    } else if (sum.overlap && count_covered_bytes(graph, group, sum.runs, &out->viewed) < 0) {
        return -1;
    }
    out->wasted = size - out->viewed;
    return is_reportable(criteria, out->wasted, size);
}

/* --- All buffers. --- */

static int append_waste(wastes_t *wastes, const waste_t *waste)
{
    if (wastes->count == wastes->capacity) {
        size_t capacity = wastes->capacity * 2 + 64;
        waste_t *rows = PyMem_RawRealloc(wastes->rows, capacity * sizeof(*rows));
        if (rows == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        wastes->rows = rows;
        wastes->capacity = capacity;
    }
    wastes->rows[wastes->count++] = *waste;
    wastes->bytes += waste->wasted;
    return 0;
}

static int compare_wastes(const void *a, const void *b)
{
    const waste_t *left = a, *right = b;
    if (left->wasted != right->wasted) {
        return left->wasted < right->wasted ? 1 : -1;
    }
    uint32_t first = left->group.members->node, second = right->group.members->node;
    return (first > second) - (first < second); /* ties keep the order of the object graph */
}

static int compute_wastes(memrt_graph_t *graph, const criteria_t *criteria,
                          const memrt_members_t *members, wastes_t *out)
{
    for (uint32_t i = 0; i < members->group_count; i++) {
        const memrt_buffer_group_t *found = &members->groups[i];
        group_t group = {members->rows + found->first, found->count};
        waste_t waste;
        int result =
            memrt__object_graph_step(graph) ? -1 : compute_waste(graph, criteria, &group, &waste);
        if (result < 0 || (result > 0 && append_waste(out, &waste) < 0)) {
            return -1;
        }
    }
    if (out->count > 0) {
        qsort(out->rows, out->count, sizeof(*out->rows), compare_wastes);
    }
    return 0;
}

/* --- The result as Python objects. --- */

/// Add the objects of a buffer to the report. Returns (meminfo, viewed, exact, views, objects, left
/// out).
static PyObject *build_waste_row(memrt_report_t *report, const waste_t *waste)
{
    uint32_t before = report->count, left_out = report->left_out;
    report->room = report->count + OBJECTS_MOST;
    for (size_t i = 0; i < waste->group.count; i++) {
        if (memrt__holder_report_add(report, waste->group.members[i].node) < 0) {
            return NULL;
        }
    }
    PyObject *meminfo = memrt__holder_report_meminfo(waste->mi, 0);
    return meminfo == NULL
               ? NULL
               : Py_BuildValue("(NnOnII)", meminfo, (Py_ssize_t)waste->viewed,
                               waste->exact ? Py_True : Py_False, (Py_ssize_t)waste->views,
                               (unsigned)(report->count - before),
                               (unsigned)(report->left_out - left_out));
}

static PyObject *build_waste_rows(memrt_report_t *report, const wastes_t *wastes, size_t count)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *row = build_waste_row(report, &wastes->rows[i]);
        if (row == NULL || PyList_Append(list, row) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *build_result(memrt_graph_t *graph, const wastes_t *wastes, size_t count)
{
    memrt_report_t report;
    if (memrt__holder_report_begin(&report, graph, (uint32_t)count * OBJECTS_MOST) < 0) {
        return NULL;
    }
    PyObject *rows = build_waste_rows(&report, wastes, count);
    PyObject *found = rows != NULL ? memrt__holder_report_make(&report) : NULL;
    memrt__holder_report_end(&report);
    if (found == NULL) {
        Py_XDECREF(rows);
        return NULL;
    }
    return Py_BuildValue("(NNnn)", rows, found, (Py_ssize_t)wastes->count,
                         (Py_ssize_t)wastes->bytes);
}

static PyObject *report_retention(memrt_graph_t *graph, void *context)
{
    const criteria_t *criteria = context;
    wastes_t wastes = {0};
    memrt_members_t members;
    PyObject *result = NULL;
    if (memrt__members_find(graph, 0, &members) == 0 &&
        compute_wastes(graph, criteria, &members, &wastes) == 0) {
        size_t limit = (size_t)criteria->limit;
        result = build_result(graph, &wastes, wastes.count < limit ? wastes.count : limit);
    }
    memrt__members_end(&members);
    PyMem_RawFree(wastes.rows);
    return result;
}

static PyObject *find_retention(PyObject *module, PyObject *args)
{
    criteria_t criteria;
    Py_ssize_t min_bytes;
    (void)module;
    if (!PyArg_ParseTuple(args, "ndn:find_retention", &min_bytes, &criteria.min_ratio,
                          &criteria.limit)) {
        return NULL;
    }
    if (min_bytes < 0 || criteria.limit < 0 || criteria.limit > BUFFERS_MOST) {
        return PyErr_Format(PyExc_ValueError,
                            "min_bytes must be 0 or more, and limit from 0 to %d, got %zd and %zd",
                            BUFFERS_MOST, min_bytes, criteria.limit);
    }
    criteria.min_bytes = (size_t)min_bytes;
    return memrt__object_graph_query(NULL, 0, report_retention, &criteria);
}

PyMethodDef memrt__retention_methods[] = {
    {"find_retention", find_retention, METH_VARARGS,
     "find_retention(min_bytes, min_ratio, limit) -> tuple\n\n"
     "Find buffers with at least `min_bytes` bytes, and at least `min_ratio` of all bytes,\n"
     "outside of all referenced views. Return at most `limit` buffers, most bytes outside\n"
     "first; the objects that keep the buffers alive, see holder_report.h; the number of all\n"
     "such buffers; and the sum of the bytes."},
    {NULL, NULL, 0, NULL},
};
