#include "report.h"

#include "chain.h"
#include "extent.h"
#include "meminfo.h"

#define PATHS_MAX 32u ///< for one object
#define PATH_MAX_STEPS 12
#define REPEATS_MAX 64u ///< references back that one from the same object is looked for

typedef struct reference {
    uint32_t from; ///< a node
    uint32_t to;   ///< a label
    uint32_t count;
} reference_t;

/// What is known of an object that is reported.
typedef struct tally {
    size_t found;    ///< references to it
    size_t left_out; ///< those by links that are not reported
    uint32_t paths;
} tally_t;

typedef struct references {
    const memrt_report_t *report;
    tally_t *tallies; ///< by label
    reference_t *rows;
    size_t count, capacity;
} references_t;

int memrt__report_begin(memrt_report_t *report, memrt_heap_t *heap, uint32_t room)
{
    *report = (memrt_report_t){.heap = heap, .room = room};
    report->nodes = PyMem_RawCalloc((size_t)room + 1, sizeof(*report->nodes));
    if (report->nodes == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

void memrt__report_end(memrt_report_t *report)
{
    PyMem_RawFree(report->nodes);
}

/// Objects from `node` to the end of its chain that have no label yet.
static uint32_t chain_length(const memrt_report_t *report, uint32_t node)
{
    const memrt_heap_t *heap = report->heap;
    uint32_t length = 0;
    while (node != MEMRT_HEAP_NONE && heap->nodes[node].label == 0 && length <= report->room) {
        PyObject *next = memrt__link_next(heap->nodes[node].object);
        node = next != NULL ? memrt__heap_find(heap, next) : MEMRT_HEAP_NONE;
        length++;
    }
    return length;
}

void memrt__report_add(memrt_report_t *report, uint32_t node)
{
    memrt_heap_t *heap = report->heap;
    uint32_t length = chain_length(report, node);
    if (length > report->room - report->count) {
        report->left_out++;
        return;
    }
    for (; length > 0; length--) {
        report->nodes[++report->count] = node;
        heap->nodes[node].label = report->count;
        PyObject *next = memrt__link_next(heap->nodes[node].object);
        node = next != NULL ? memrt__heap_find(heap, next) : MEMRT_HEAP_NONE;
    }
}

/* --- Finding the references. --- */

static int grow(references_t *references)
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

/// The row of the same reference, if it was noted lately.
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

/// Whether it is a link of the chain to an object that was left out of the report.
static int is_left_out(const memrt_report_t *report, const memrt_heap_node_t *from, PyObject *to)
{
    return report->left_out != 0 && from->label == 0 && from->kind == MEMRT_NODE_OBJECT &&
           memrt__link_maybe(from->object) && memrt__link_next(from->object) == to;
}

/// What as_strided leaves may have its attributes in a dict, which then is who refers to the next.
static uint32_t link_with(const memrt_heap_t *heap, uint32_t node)
{
    const memrt_heap_node_t *dict = &heap->nodes[node];
    if (dict->kind == MEMRT_NODE_OBJECT && PyDict_CheckExact(dict->object) &&
        dict->parent != MEMRT_HEAP_NONE && heap->nodes[dict->parent].label != 0 &&
        memrt__link_of(heap->nodes[dict->parent].object) == MEMRT_LINK_STRIDES) {
        return dict->parent;
    }
    return node;
}

static int note(uint32_t from, uint32_t to, void *context)
{
    references_t *references = context;
    const memrt_heap_t *heap = references->report->heap;
    from = link_with(heap, from);
    const memrt_heap_node_t *source = &heap->nodes[from];
    uint32_t label = heap->nodes[to].label;
    tally_t *tally = &references->tallies[label];
    tally->found++;
    if (is_left_out(references->report, source, heap->nodes[to].object)) {
        tally->left_out++;
        return 0;
    }
    reference_t *row = find_row(references, from, label);
    if (row != NULL) {
        row->count++;
        return 0;
    }
    if ((source->label == 0 && tally->paths++ >= PATHS_MAX) || grow(references) < 0) {
        return PyErr_Occurred() ? -1 : 0;
    }
    references->rows[references->count++] = (reference_t){from, label, 1};
    return 0;
}

/* --- Telling them. --- */

/// The next node on the way up that is an object.
static uint32_t above(const memrt_heap_t *heap, uint32_t node)
{
    do {
        node = heap->nodes[node].parent;
    } while (node != MEMRT_HEAP_NONE && heap->nodes[node].kind == MEMRT_NODE_OWNER);
    return node;
}

/// What refers to an object on behalf of what keeps a wrapped MemInfo alive is the MemInfo.
static uint32_t object_at(const memrt_heap_t *heap, uint32_t node)
{
    return heap->nodes[node].kind == MEMRT_NODE_OWNER ? above(heap, node) : node;
}

/// Steps of a way up, and the last object.
static Py_ssize_t measure(const memrt_heap_t *heap, uint32_t node, uint32_t *last)
{
    Py_ssize_t steps = 0;
    for (; node != MEMRT_HEAP_NONE && steps < (Py_ssize_t)heap->count; node = above(heap, node)) {
        *last = node;
        steps++;
    }
    return steps;
}

static PyObject *path_of(const memrt_heap_t *heap, uint32_t node, Py_ssize_t steps, uint32_t last)
{
    Py_ssize_t length = steps < PATH_MAX_STEPS ? steps : PATH_MAX_STEPS;
    PyObject *path = PyTuple_New(length);
    for (Py_ssize_t i = 0; path != NULL && i < length; i++) {
        uint32_t step = i == length - 1 ? last : node;
        PyTuple_SET_ITEM(path, i, Py_NewRef(heap->nodes[step].object));
        node = above(heap, node);
    }
    return path;
}

static PyObject *tell_reference(const memrt_report_t *report, const reference_t *row)
{
    const memrt_heap_t *heap = report->heap;
    uint32_t from = object_at(heap, row->from), last = from;
    Py_ssize_t label = (Py_ssize_t)heap->nodes[from].label, to = (Py_ssize_t)row->to;
    if (label != 0 && from == row->from) {
        return Py_BuildValue("(nnnOn)", to - 1, label - 1, (Py_ssize_t)row->count, Py_None,
                             (Py_ssize_t)0);
    }
    Py_ssize_t steps = measure(heap, from, &last);
    PyObject *path = path_of(heap, from, steps, last);
    return path == NULL ? NULL
                        : Py_BuildValue("(nnnNn)", to - 1, (Py_ssize_t)-1, (Py_ssize_t)row->count,
                                        path, steps);
}

static PyObject *tell_references(const references_t *references)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < references->count; i++) {
        PyObject *row = tell_reference(references->report, &references->rows[i]);
        if (row == NULL || PyList_Append(list, row) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    return list;
}

static Py_ssize_t bytes_of(PyObject *object)
{
    memrt_extent_t extent;
    return memrt__extent_of(object, &extent) ? (Py_ssize_t)memrt__extent_bytes(&extent) : -1;
}

static PyObject *tell_object(const memrt_report_t *report, PyObject *object, Py_ssize_t counts,
                             const tally_t *tally)
{
    counts -= object == report->asked ? report->asked_counts : 0;
    return Py_BuildValue("(Oinnnn)", object, (int)memrt__link_of(object), counts,
                         (Py_ssize_t)tally->found, (Py_ssize_t)tally->left_out, bytes_of(object));
}

static PyObject *tell_objects(const references_t *references)
{
    const memrt_report_t *report = references->report;
    PyObject *list = PyList_New(0);
    for (uint32_t label = 1; list != NULL && label <= report->count; label++) {
        PyObject *object = report->heap->nodes[report->nodes[label]].object;
        PyObject *row = tell_object(report, object, Py_REFCNT(object), &references->tallies[label]);
        if (row == NULL || PyList_Append(list, row) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    return list;
}

/// Objects first: what refers to them counts among their references once it is in a list.
static PyObject *tell(const references_t *references)
{
    PyObject *objects = tell_objects(references);
    PyObject *rows = objects != NULL ? tell_references(references) : NULL;
    if (rows == NULL) {
        Py_XDECREF(objects);
        return NULL;
    }
    return Py_BuildValue("(NN)", objects, rows);
}

PyObject *memrt__report_make(memrt_report_t *report)
{
    references_t references = {.report = report};
    PyObject *told = NULL;
    references.tallies = PyMem_RawCalloc((size_t)report->count + 1, sizeof(tally_t));
    if (references.tallies == NULL) {
        PyErr_NoMemory();
    } else if (memrt__heap_edges(report->heap, note, &references) == 0) {
        told = tell(&references);
    }
    PyMem_RawFree(references.tallies);
    PyMem_RawFree(references.rows);
    return told;
}

/* --- The MemInfo. --- */

static PyObject *text_of(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static PyObject *tell_name(const memrt_holder_t *row)
{
    return Py_BuildValue("(NInKK)", text_of(row->name), (unsigned)row->kind, (Py_ssize_t)row->count,
                         (unsigned long long)row->thread, (unsigned long long)row->age_ns);
}

static PyObject *tell_names(const memrt_meminfo_t *mi)
{
    size_t count = memrt__api()->holders(mi, NULL, 0, 0);
    memrt_holder_t *rows = PyMem_RawCalloc(count + 1, sizeof(*rows));
    if (rows == NULL) {
        return PyErr_NoMemory();
    }
    size_t now = memrt__api()->holders(mi, rows, sizeof(*rows), count);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < count && i < now; i++) {
        PyObject *row = tell_name(&rows[i]);
        if (row == NULL || PyList_Append(list, row) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    PyMem_RawFree(rows);
    return list;
}

/// Number of the place of birth; 0: not known.
static unsigned long site_of(const memrt_meminfo_t *mi)
{
    memrt_buffer_t row;
    memrt_status_t status = memrt__api()->buffer_read(mi, sizeof(row), &row);
    return status == MEMRT_OK ? row.site : 0;
}

PyObject *memrt__report_meminfo(memrt_meminfo_t *mi, size_t taken)
{
    const memrt_api_t *api = memrt__api();
    char name[MEMRT_NAME_MAX + 1];
    api->get_name(mi, name);
    PyObject *names = tell_names(mi);
    if (names == NULL) {
        return NULL;
    }
    return Py_BuildValue("((nnnINNk)N)", (Py_ssize_t)(uintptr_t)mi->data, (Py_ssize_t)api->size(mi),
                         (Py_ssize_t)(api->refcount(mi) - taken), (unsigned)mi->kind,
                         text_of(api->policy_name(api->policy_of(mi))), text_of(name), site_of(mi),
                         names);
}
