/// Two passes: memrt__holder_report_add() labels the objects to report, and one walk over all
/// references then finds their referrers.

#include "observe/holder_report.h"

#include "core/meminfo_object.h"
#include "observe/base_chain.h"
#include "observe/reference.h"
#include "support/arguments.h"
#include "support/byte_ranges.h"

#define PATHS_MAX 32u   ///< maximum number of paths per object
#define REPEATS_MAX 64u ///< number of recent references searched for a repetition
#define LEVELS_MAX 64u  ///< reported links of a chain; the package recurses over them

/// Label of an object that keeps the buffer alive but is left out of the report.
#define LEFT_OUT MEMRT_LABEL_MOST

typedef struct reference {
    uint32_t from; ///< a node
    uint32_t to;   ///< a label
    uint32_t count;
    int is_link; ///< link of a chain: `from` takes its memory from the object
} reference_t;

/// Counts of a reported object.
typedef struct tally {
    size_t found;    ///< references to the object
    size_t left_out; ///< references by links that are not reported
    uint32_t paths;
} tally_t;

typedef struct references {
    const memrt_report_t *report;
    memrt_paths_t paths;
    tally_t *tallies; ///< indexed by label
    reference_t *rows;
    size_t count, capacity;
} references_t;

int memrt__holder_report_begin(memrt_report_t *report, memrt_graph_t *graph, uint32_t room)
{
    *report = (memrt_report_t){.graph = graph, .room = room};
    report->nodes = PyMem_RawCalloc((size_t)room + 1, sizeof(*report->nodes));
    report->levels = PyMem_RawCalloc((size_t)room + 1, sizeof(*report->levels));
    if (report->nodes == NULL || report->levels == NULL) {
        memrt__holder_report_end(report);
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

void memrt__holder_report_end(memrt_report_t *report)
{
    PyMem_RawFree(report->nodes);
    PyMem_RawFree(report->levels);
    PyMem_RawFree(report->stack);
}

/* --- Objects to be reported. --- */

static int push_node(memrt_report_t *report, size_t depth, uint32_t node)
{
    if (depth == report->stack_size) {
        size_t size = report->stack_size * 2 + 64;
        uint32_t *stack = PyMem_RawRealloc(report->stack, size * sizeof(*stack));
        if (stack == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        report->stack = stack;
        report->stack_size = size;
    }
    report->stack[depth] = node;
    return memrt__object_graph_step(report->graph) ? -1 : 0;
}

/// Return the node of the next link of a chain, or MEMRT_GRAPH_NONE.
static uint32_t find_next_link(const memrt_graph_t *graph, uint32_t node)
{
    PyObject *next = memrt__link_next(graph->nodes[node].object);
    return next != NULL ? memrt__object_graph_find(graph, next) : MEMRT_GRAPH_NONE;
}

/// Return the number of links from a labelled node to the end of its chain.
static uint32_t get_level(const memrt_report_t *report, uint32_t node)
{
    uint32_t label = report->graph->nodes[node].label;
    return label != LEFT_OUT ? report->levels[label] : LEVELS_MAX;
}

int memrt__holder_report_add(memrt_report_t *report, uint32_t node)
{
    memrt_graph_t *graph = report->graph;
    size_t depth = 0;
    /* The label set here also ends a circular chain. */
    for (; node != MEMRT_GRAPH_NONE && graph->nodes[node].label == 0;
         node = find_next_link(graph, node)) {
        if (push_node(report, depth++, node) < 0) {
            return -1;
        }
        graph->nodes[node].label = LEFT_OUT;
    }
    uint32_t level = node != MEMRT_GRAPH_NONE ? get_level(report, node) : 0;
    while (depth-- > 0) {
        if (level >= LEVELS_MAX || report->count >= report->room) {
            level = LEVELS_MAX;
            report->left_out++;
            continue;
        }
        report->nodes[++report->count] = report->stack[depth];
        report->levels[report->count] = ++level;
        graph->nodes[report->stack[depth]].label = report->count & MEMRT_LABEL_MOST;
    }
    return 0;
}

/* --- Finding the references. --- */

static int grow_rows(references_t *references)
{
    if (references->count < references->capacity) {
        return 0;
    }
    size_t capacity = references->capacity * 2 + 64;
    reference_t *rows = PyMem_RawRealloc(references->rows, capacity * sizeof(*rows));
    if (rows == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    references->rows = rows;
    references->capacity = capacity;
    return 0;
}

/// Return the row of the same reference, if a recent call added the row.
static reference_t *find_row(const references_t *references, uint32_t from, uint32_t to)
{
    for (size_t i = references->count, tries = REPEATS_MAX; i-- > 0 && tries > 0; tries--) {
        reference_t *row = &references->rows[i];
        if (row->from != from) {
            return NULL;
        }
        if (row->to == to) {
            return row;
        }
    }
    return NULL;
}

/// Count a reference to a labelled object. Callback of memrt__object_graph_edges.
static int count_reference(uint32_t from, uint32_t to, void *context)
{
    references_t *references = context;
    const memrt_graph_t *graph = references->report->graph;
    uint32_t label = graph->nodes[to].label;
    if (label == LEFT_OUT) {
        return 0;
    }
    from = memrt__reference_source(graph, from);
    tally_t *tally = &references->tallies[label];
    int is_link = memrt__reference_is_link(graph, from, to);
    tally->found++;
    if (is_link && graph->nodes[from].label == LEFT_OUT) {
        tally->left_out++;
        return 0;
    }
    reference_t *row = find_row(references, from, label);
    if (row != NULL) {
        row->count++;
        return 0;
    }
    if ((!is_link && tally->paths++ >= PATHS_MAX) || grow_rows(references) < 0) {
        return PyErr_Occurred() ? -1 : 0;
    }
    references->rows[references->count++] = (reference_t){from, label, 1, is_link};
    return 0;
}

/* --- The result as Python objects. --- */

static PyObject *build_reference_row(references_t *references, const reference_t *row)
{
    const memrt_graph_t *graph = references->report->graph;
    Py_ssize_t to = (Py_ssize_t)row->to, steps;
    if (row->is_link) {
        return Py_BuildValue("(nnnOn)", to - 1, (Py_ssize_t)graph->nodes[row->from].label - 1,
                             (Py_ssize_t)row->count, Py_None, (Py_ssize_t)0);
    }
    PyObject *path = memrt__path_up(&references->paths, row->from, &steps);
    return path == NULL ? NULL
                        : Py_BuildValue("(nnnNn)", to - 1, (Py_ssize_t)-1, (Py_ssize_t)row->count,
                                        path, steps);
}

static PyObject *build_reference_rows(references_t *references)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < references->count; i++) {
        PyObject *row = build_reference_row(references, &references->rows[i]);
        if (row == NULL || PyList_Append(list, row) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    return list;
}

static Py_ssize_t count_bytes(PyObject *object)
{
    memrt_extent_t extent;
    return memrt__byte_ranges_of(object, &extent) ? (Py_ssize_t)memrt__byte_ranges_bytes(&extent)
                                                  : -1;
}

static PyObject *build_object_row(const memrt_report_t *report, PyObject *object, Py_ssize_t counts,
                                  const tally_t *tally)
{
    counts -= object == report->queried ? report->queried_counts : 0;
    return Py_BuildValue("(Oinnnn)", object, (int)memrt__link_of(object), counts,
                         (Py_ssize_t)tally->found, (Py_ssize_t)tally->left_out,
                         count_bytes(object));
}

static PyObject *build_object_rows(const references_t *references)
{
    const memrt_report_t *report = references->report;
    PyObject *list = PyList_New(0);
    for (uint32_t label = 1; list != NULL && label <= report->count; label++) {
        PyObject *object = report->graph->nodes[report->nodes[label]].object;
        PyObject *row =
            build_object_row(report, object, Py_REFCNT(object), &references->tallies[label]);
        if (row == NULL || PyList_Append(list, row) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    return list;
}

/// Build the result. Objects come first: once a referrer is in the result list, the list adds to
/// its reference count.
static PyObject *build_report(references_t *references)
{
    PyObject *objects = build_object_rows(references);
    PyObject *rows = objects != NULL ? build_reference_rows(references) : NULL;
    if (rows == NULL) {
        Py_XDECREF(objects);
        return NULL;
    }
    return Py_BuildValue("(NN)", objects, rows);
}

PyObject *memrt__holder_report_make(memrt_report_t *report)
{
    references_t references = {.report = report};
    PyObject *result = NULL;
    references.tallies = PyMem_RawCalloc((size_t)report->count + 1, sizeof(tally_t));
    int begun = memrt__paths_begin(&references.paths, report->graph);
    if (references.tallies == NULL) {
        PyErr_NoMemory();
    } else if (begun == 0 &&
               memrt__object_graph_edges(report->graph, count_reference, &references) == 0) {
        result = build_report(&references);
    }
    PyMem_RawFree(references.tallies);
    memrt__paths_end(&references.paths);
    PyMem_RawFree(references.rows);
    return result;
}

/* --- The MemInfo. --- */

static PyObject *build_name_row(const memrt_holder_t *row)
{
    return Py_BuildValue("(NInKK)", memrt__text(row->name), (unsigned)row->kind,
                         (Py_ssize_t)row->count, (unsigned long long)row->thread,
                         (unsigned long long)row->age_ns);
}

static PyObject *build_name_rows(const memrt_meminfo_t *mi)
{
    size_t count = memrt__api()->holders(mi, NULL, 0, 0);
    memrt_holder_t *rows = PyMem_RawCalloc(count + 1, sizeof(*rows));
    if (rows == NULL) {
        return PyErr_NoMemory();
    }
    size_t now = memrt__api()->holders(mi, rows, sizeof(*rows), count);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < count && i < now; i++) {
        PyObject *row = build_name_row(&rows[i]);
        if (row == NULL || PyList_Append(list, row) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    PyMem_RawFree(rows);
    return list;
}

/// Return the number of the allocation site; 0: unknown.
static unsigned long read_site(const memrt_meminfo_t *mi)
{
    memrt_buffer_t row;
    memrt_status_t status = memrt__api()->buffer_read(mi, sizeof(row), &row);
    return status == MEMRT_OK ? row.site : 0;
}

PyObject *memrt__holder_report_meminfo(memrt_meminfo_t *mi, size_t taken)
{
    const memrt_api_t *api = memrt__api();
    char name[MEMRT_NAME_MAX + 1];
    api->get_name(mi, name);
    PyObject *names = build_name_rows(mi);
    if (names == NULL) {
        return NULL;
    }
    return Py_BuildValue("((nnnINNk)N)", (Py_ssize_t)(uintptr_t)mi->data, (Py_ssize_t)api->size(mi),
                         (Py_ssize_t)(api->refcount(mi) - taken), (unsigned)mi->kind,
                         memrt__text(api->policy_name(api->policy_of(mi))), memrt__text(name),
                         read_site(mi), names);
}
