#include "retention.h"

#include <stdlib.h>

#include "chain.h"
#include "extent.h"
#include "report.h"

#define OBJECTS_MOST 100u    ///< that are told of one buffer
#define RUNS_MOST (1u << 22) ///< runs of bytes that are put together for one buffer
#define BUFFERS_MOST 10000   ///< that are told

/// Which buffers are asked for.
typedef struct question {
    size_t min_bytes; ///< wasted at least
    double min_ratio; ///< of the buffer's bytes
    Py_ssize_t limit; ///< how many, at most
} question_t;

/// An object that keeps a buffer.
typedef struct member {
    memrt_buffer_key_t key;
    uint32_t node;
    memrt_link_t link;
    Py_ssize_t free; ///< references that are not of the next link in a chain
} member_t;

/// The objects that keep one buffer.
typedef struct group {
    const member_t *members;
    size_t count;
} group_t;

/// A buffer that is kept for less than all of it.
typedef struct waste {
    group_t group;
    memrt_meminfo_t *mi;
    size_t viewed, wasted, views;
    int exact; ///< 0: `viewed` is an upper bound
} waste_t;

typedef struct wastes {
    waste_t *rows;
    size_t count, capacity;
    size_t bytes; ///< wasted by all
} wastes_t;

/* --- Members, by buffer. --- */

/// Labels count, for each object, the links of chains that lead to it.
static void count_links(memrt_heap_t *heap)
{
    for (uint32_t i = 0; i < heap->count; i++) {
        const memrt_heap_node_t *node = &heap->nodes[i];
        if (node->kind == MEMRT_NODE_OBJECT && memrt__link_maybe(node->object)) {
            PyObject *next = memrt__link_next(node->object);
            uint32_t to = next != NULL ? memrt__heap_find(heap, next) : MEMRT_HEAP_NONE;
            if (to != MEMRT_HEAP_NONE) {
                heap->nodes[to].label++;
            }
        }
    }
}

static size_t count_maybes(const memrt_heap_t *heap)
{
    size_t count = 0;
    for (uint32_t i = 0; i < heap->count; i++) {
        count +=
            heap->nodes[i].kind == MEMRT_NODE_OBJECT && memrt__link_maybe(heap->nodes[i].object);
    }
    return count;
}

/// Fill in all members and take the labels away again; how many they are.
static size_t fill_members(memrt_heap_t *heap, member_t *members)
{
    size_t count = 0;
    for (uint32_t i = 0; i < heap->count; i++) {
        memrt_heap_node_t *node = &heap->nodes[i];
        if (node->kind == MEMRT_NODE_OBJECT && memrt__link_maybe(node->object)) {
            memrt_buffer_key_t key = memrt__chain_key(node->object);
            Py_ssize_t links = (Py_ssize_t)node->label;
            if (key != 0) {
                members[count++] = (member_t){key, i, memrt__link_of(node->object),
                                              Py_REFCNT(node->object) - links};
            }
        }
        node->label = 0;
    }
    return count;
}

static int by_key(const void *a, const void *b)
{
    const member_t *left = a, *right = b;
    if (left->key != right->key) {
        return left->key < right->key ? -1 : 1;
    }
    return (left->node > right->node) - (left->node < right->node);
}

/// NULL with MemoryError.
static member_t *find_members(memrt_heap_t *heap, size_t *count)
{
    member_t *members = PyMem_RawCalloc(count_maybes(heap) + 1, sizeof(*members));
    if (members == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    count_links(heap);
    *count = fill_members(heap, members);
    qsort(members, *count, sizeof(*members), by_key);
    return members;
}

/* --- What of a buffer is viewed. --- */

/// The MemInfo of a group if nobody holds it but its members. NULL: somebody else does, or it is
/// tiny.
static memrt_meminfo_t *meminfo_of(const memrt_heap_t *heap, const group_t *group)
{
    memrt_meminfo_t *mi = NULL;
    size_t known = 0;
    for (size_t i = 0; i < group->count; i++) {
        const member_t *member = &group->members[i];
        if (memrt__link_is_last(member->link)) {
            mi = memrt__link_meminfo(heap->nodes[member->node].object);
            known++;
        }
    }
    return mi != NULL && memrt__api()->refcount(mi) <= known ? mi : NULL;
}

/// Views of a buffer, as if none lay over another.
typedef struct sum {
    size_t runs;
    int overlap; ///< some runs may
} sum_t;

static void add_view(const memrt_extent_t *extent, waste_t *waste, sum_t *sum)
{
    size_t bytes = memrt__extent_bytes(extent);
    sum->overlap |= waste->views++ != 0 || !memrt__extent_is_plain(extent);
    if (__builtin_add_overflow(waste->viewed, bytes, &waste->viewed) ||
        __builtin_add_overflow(sum->runs, memrt__extent_runs(extent), &sum->runs)) {
        sum->runs = waste->viewed = SIZE_MAX;
    }
}

/// Sum up what is viewed. 0: all of it is, by one.
static int add_up(const memrt_heap_t *heap, const group_t *group, size_t size, waste_t *waste,
                  sum_t *sum)
{
    memrt_extent_t extent;
    for (size_t i = 0; i < group->count; i++) {
        const member_t *member = &group->members[i];
        if (member->free <= 0) {
            continue;
        }
        if (!memrt__extent_of(heap->nodes[member->node].object, &extent)) {
            return 0;
        }
        if (extent.nd == 0 && extent.run >= size) {
            return 0;
        }
        add_view(&extent, waste, sum);
    }
    return 1;
}

/// Bytes that are in any view. -1 with MemoryError.
static int unite(const memrt_heap_t *heap, const group_t *group, size_t runs, size_t *bytes)
{
    memrt_range_t *ranges = PyMem_RawCalloc(runs + 1, sizeof(*ranges));
    memrt_extent_t extent;
    size_t count = 0;
    if (ranges == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < group->count; i++) {
        const member_t *member = &group->members[i];
        if (member->free > 0 && memrt__extent_of(heap->nodes[member->node].object, &extent)) {
            count += memrt__extent_ranges(&extent, ranges + count);
        }
    }
    *bytes = memrt__ranges_union(ranges, count);
    PyMem_RawFree(ranges);
    return 0;
}

static int is_asked_for(const question_t *question, size_t wasted, size_t size)
{
    return wasted > 0 && wasted >= question->min_bytes &&
           (double)wasted >= question->min_ratio * (double)size;
}

/// Returns whether a buffer is wasted as asked for; -1 with MemoryError.
static int weigh(const memrt_heap_t *heap, const question_t *question, const group_t *group,
                 waste_t *out)
{
    sum_t sum = {0};
    *out = (waste_t){.group = *group, .mi = meminfo_of(heap, group), .exact = 1};
    size_t size = out->mi != NULL ? memrt__api()->size(out->mi) : 0;
    if (size < question->min_bytes || !add_up(heap, group, size, out, &sum) || out->views == 0) {
        return 0;
    }
    if (sum.overlap && sum.runs > RUNS_MOST) {
        out->exact = 0;
        out->viewed = out->viewed < size ? out->viewed : size;
    } else if (sum.overlap && unite(heap, group, sum.runs, &out->viewed) < 0) {
        return -1;
    }
    out->wasted = size - out->viewed;
    return is_asked_for(question, out->wasted, size);
}

/* --- All buffers. --- */

static int append(wastes_t *wastes, const waste_t *waste)
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

static int most_first(const void *a, const void *b)
{
    const waste_t *left = a, *right = b;
    if (left->wasted != right->wasted) {
        return left->wasted < right->wasted ? 1 : -1;
    }
    uint32_t first = left->group.members->node, second = right->group.members->node;
    return (first > second) - (first < second); /* in the order that they were found in */
}

static int weigh_all(const memrt_heap_t *heap, const question_t *question, const member_t *members,
                     size_t count, wastes_t *out)
{
    group_t group = {members, 0};
    for (; group.members < members + count; group.members += group.count) {
        waste_t waste;
        size_t rest = count - (size_t)(group.members - members);
        for (group.count = 1;
             group.count < rest && group.members[group.count].key == group.members->key;) {
            group.count++;
        }
        int found = weigh(heap, question, &group, &waste);
        if (found < 0 || (found > 0 && append(out, &waste) < 0)) {
            return -1;
        }
    }
    if (out->count > 0) {
        qsort(out->rows, out->count, sizeof(*out->rows), most_first);
    }
    return 0;
}

/* --- Telling them. --- */

/// Have the objects of a buffer reported; (meminfo, viewed, exact, views, objects, left out).
static PyObject *tell_waste(memrt_report_t *report, const waste_t *waste)
{
    uint32_t before = report->count, left_out = report->left_out;
    report->room = report->count + OBJECTS_MOST;
    for (size_t i = 0; i < waste->group.count; i++) {
        uint32_t node = waste->group.members[i].node;
        if (report->heap->nodes[node].label == 0) {
            memrt__report_add(report, node);
        }
    }
    PyObject *meminfo = memrt__report_meminfo(waste->mi, 0);
    return meminfo == NULL
               ? NULL
               : Py_BuildValue("(NnOnII)", meminfo, (Py_ssize_t)waste->viewed,
                               waste->exact ? Py_True : Py_False, (Py_ssize_t)waste->views,
                               (unsigned)(report->count - before),
                               (unsigned)(report->left_out - left_out));
}

static PyObject *tell_wastes(memrt_report_t *report, const wastes_t *wastes, size_t count)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *row = tell_waste(report, &wastes->rows[i]);
        if (row == NULL || PyList_Append(list, row) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *tell(memrt_heap_t *heap, const wastes_t *wastes, size_t count)
{
    memrt_report_t report;
    if (memrt__report_begin(&report, heap, (uint32_t)count * OBJECTS_MOST) < 0) {
        return NULL;
    }
    PyObject *rows = tell_wastes(&report, wastes, count);
    PyObject *found = rows != NULL ? memrt__report_make(&report) : NULL;
    memrt__report_end(&report);
    if (found == NULL) {
        Py_XDECREF(rows);
        return NULL;
    }
    return Py_BuildValue("(NNnn)", rows, found, (Py_ssize_t)wastes->count,
                         (Py_ssize_t)wastes->bytes);
}

static PyObject *answer(memrt_heap_t *heap, void *context)
{
    const question_t *question = context;
    wastes_t wastes = {0};
    size_t count;
    PyObject *told = NULL;
    member_t *members = find_members(heap, &count);
    if (members != NULL && weigh_all(heap, question, members, count, &wastes) == 0) {
        size_t limit = (size_t)question->limit;
        told = tell(heap, &wastes, wastes.count < limit ? wastes.count : limit);
    }
    PyMem_RawFree(members);
    PyMem_RawFree(wastes.rows);
    return told;
}

static PyObject *find_retention(PyObject *module, PyObject *args)
{
    question_t question;
    Py_ssize_t min_bytes;
    (void)module;
    if (!PyArg_ParseTuple(args, "ndn:find_retention", &min_bytes, &question.min_ratio,
                          &question.limit)) {
        return NULL;
    }
    if (min_bytes < 0 || question.limit < 0) {
        PyErr_SetString(PyExc_ValueError, "a number of bytes or buffers must be 0 or more");
        return NULL;
    }
    question.min_bytes = (size_t)min_bytes;
    question.limit = question.limit < BUFFERS_MOST ? question.limit : BUFFERS_MOST;
    return memrt__heap_ask(NULL, 0, answer, &question);
}

PyMethodDef memrt__retention_methods[] = {
    {"find_retention", find_retention, METH_VARARGS,
     "find_retention(min_bytes, min_ratio, limit) -> tuple\n\n"
     "The buffers of which at least so many bytes, and such a part, are in no view that somebody\n"
     "refers to, the worst first; the objects that keep them, see report.h; how many buffers "
     "there\n"
     "are, and their bytes that nobody views."},
    {NULL, NULL, 0, NULL},
};
