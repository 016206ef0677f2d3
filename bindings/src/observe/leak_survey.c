#include "observe/leak_survey.h"

#include "core/meminfo_object.h"
#include "observe/members.h"
#include "observe/reference.h"
#include "support/byte_ranges.h"
#include "support/ndarray.h"

#define REFERENCES_MOST 4u ///< maximum number of reported references per buffer
#define CLIMB_MOST 8       ///< maximum depth of nested containers whose elements count as alike

/// A buffer of the query.
typedef struct subject {
    memrt_buffer_key_t key;
    uint32_t group; ///< group number from 1; 0: no object keeps the buffer
    int is_live;
    size_t references; ///< references to the MemInfo
    size_t named;      ///< of `references`, named references of C code
} subject_t;

/// References of the program to the members of a buffer.
typedef struct tally {
    size_t found;
    size_t last; ///< members that hold a reference to the MemInfo themselves
    uint32_t reported;
    int is_wanted;
} tally_t;

/// A reference of the program to a member of a buffer.
typedef struct reference {
    uint32_t from;        ///< a node
    uint32_t row;         ///< row of the member
    uint32_t path_number; ///< number of the path; UINT32_MAX: beyond the limit
} reference_t;

typedef struct survey {
    subject_t *subjects;
    size_t count;
    size_t path_limit;
    memrt_graph_t *graph;
    memrt_members_t members;
    tally_t *tallies; ///< indexed by group
    reference_t *references;
    size_t reference_count, capacity;
} survey_t;

/* --- The buffers. --- */

/// Return the number of named references to a MemInfo. Without memory, the number of names.
static size_t count_named_references(const memrt_meminfo_t *mi)
{
    size_t rows = memrt__api()->holders(mi, NULL, 0, 0), total = 0;
    memrt_holder_t *names = rows > 0 ? PyMem_RawCalloc(rows, sizeof(*names)) : NULL;
    if (names == NULL) {
        return rows;
    }
    size_t now = memrt__api()->holders(mi, names, sizeof(*names), rows);
    for (size_t i = 0; i < rows && i < now; i++) {
        total += (size_t)names[i].count;
    }
    PyMem_RawFree(names);
    return total;
}

/// Read a buffer by address. A freed buffer is not an error. -1 with an exception.
static int read_subject(PyObject *address, subject_t *out)
{
    const memrt_api_t *api = memrt__api();
    memrt_meminfo_t *mi;
    void *data = PyLong_AsVoidPtr(address);
    *out = (subject_t){0};
    if (data == NULL && PyErr_Occurred() != NULL) {
        return -1;
    }
    if (api->find(data, &mi) != MEMRT_OK) {
        return 0;
    }
    *out = (subject_t){memrt__meminfo_key(mi), 0, 1, api->refcount(mi) - 1,
                       count_named_references(mi)};
    api->release(mi);
    return 0;
}

static int read_subjects(PyObject *addresses, survey_t *survey)
{
    survey->count = (size_t)PyList_GET_SIZE(addresses);
    survey->subjects = PyMem_RawCalloc(survey->count + 1, sizeof(subject_t));
    if (survey->subjects == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    /* A release may run Python code, which may change the list. */
    for (size_t i = 0; i < survey->count; i++) {
        PyObject *address = PySequence_GetItem(addresses, (Py_ssize_t)i);
        int result = address != NULL ? read_subject(address, &survey->subjects[i]) : -1;
        Py_XDECREF(address);
        if (result < 0) {
            return -1;
        }
    }
    return 0;
}

/// Find the group of each buffer, and label the members of these groups. -1 with MemoryError, or if
/// interrupted.
static int label_members(survey_t *survey)
{
    const memrt_members_t *members = &survey->members;
    survey->tallies = PyMem_RawCalloc((size_t)members->group_count + 1, sizeof(tally_t));
    if (survey->tallies == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < survey->count; i++) {
        subject_t *subject = &survey->subjects[i];
        const memrt_buffer_group_t *group = memrt__members_of(members, subject->key);
        subject->group = 0; /* the walk may have been repeated */
        if (group != NULL) {
            subject->group = (uint32_t)(group - members->groups) + 1;
            survey->tallies[subject->group - 1].is_wanted = 1;
        }
    }
    for (size_t i = 0; i < members->count; i++) {
        const memrt_member_t *row = &members->rows[i];
        if (survey->tallies[row->group].is_wanted) {
            survey->graph->nodes[row->node].label = (unsigned)(i + 1) & MEMRT_LABEL_MOST;
            survey->tallies[row->group].last += (size_t)memrt__link_is_last(row->link);
        }
        if (memrt__object_graph_step(survey->graph)) {
            return -1;
        }
    }
    return 0;
}

/* --- References of the program to members of the buffers. --- */

static int append_reference(survey_t *survey, const reference_t *reference)
{
    if (survey->reference_count == survey->capacity) {
        size_t capacity = survey->capacity * 2 + 64;
        reference_t *rows = PyMem_RawRealloc(survey->references, capacity * sizeof(*rows));
        if (rows == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        survey->references = rows;
        survey->capacity = capacity;
    }
    survey->references[survey->reference_count++] = *reference;
    return 0;
}

/// Count a reference to a labelled member. Callback of memrt__object_graph_edges.
static int count_reference(uint32_t from, uint32_t to, void *context)
{
    survey_t *survey = context;
    uint32_t row = survey->graph->nodes[to].label - 1;
    from = memrt__reference_source(survey->graph, from);
    if (memrt__reference_is_link(survey->graph, from, to)) {
        return 0;
    }
    tally_t *tally = &survey->tallies[survey->members.rows[row].group];
    tally->found++;
    if (tally->reported == REFERENCES_MOST) {
        return 0;
    }
    tally->reported++;
    return append_reference(survey, &(reference_t){from, row, 0});
}

/* --- Paths to the references. --- */

static int is_sequence(PyObject *object)
{
    return PyList_Check(object) || PyTuple_Check(object) || PyAnySet_Check(object) ||
           (PyArray_Check(object) && PyArray_TYPE((PyArrayObject *)object) == NPY_OBJECT) ||
           strcmp(Py_TYPE(object)->tp_name, "collections.deque") == 0;
}

/// Return whether the references of an object differ only in index or key for a reader. The dict of
/// an object's attributes is not such a container. A plain dict is certainly not an attribute dict
/// only if a container or a frame refers to the dict.
static int is_container(const memrt_graph_t *graph, uint32_t node)
{
    const memrt_graph_node_t *source = &graph->nodes[node];
    if (source->kind != MEMRT_NODE_OBJECT || !PyDict_Check(source->object)) {
        return source->kind == MEMRT_NODE_OBJECT && is_sequence(source->object);
    }
    if (!PyDict_CheckExact(source->object)) {
        return 1;
    }
    const memrt_graph_node_t *parent =
        source->parent != MEMRT_GRAPH_NONE ? &graph->nodes[source->parent] : NULL;
    return parent != NULL && (parent->kind == MEMRT_NODE_FRAME ||
                              (parent->kind == MEMRT_NODE_OBJECT &&
                               (PyDict_Check(parent->object) || is_sequence(parent->object))));
}

/// Return the key shared by paths that differ only in indexes and keys: the outermost of the nested
/// containers, and the types of the inner containers. New reference.
static PyObject *build_path_key(const survey_t *survey, const reference_t *reference)
{
    const memrt_graph_t *graph = survey->graph;
    uint32_t node = reference->from, parent;
    uintptr_t types = 0;
    if (!is_container(graph, node)) {
        return Py_BuildValue("(II)", (unsigned)node, (unsigned)reference->row);
    }
    for (int i = 0; i < CLIMB_MOST; i++, node = parent) {
        parent = graph->nodes[node].parent;
        if (parent == MEMRT_GRAPH_NONE || !is_container(graph, parent)) {
            break;
        }
        types = types * 31 + (uintptr_t)Py_TYPE(graph->nodes[node].object);
    }
    return Py_BuildValue("(InK)", (unsigned)node, (Py_ssize_t)-1, (unsigned long long)types);
}

/// Set the path number of a reference; a new path is appended to `path_rows`. -1 with an exception,
/// or if interrupted.
static int assign_path_number(survey_t *survey, reference_t *reference, PyObject *numbers,
                              PyObject *path_rows, memrt_paths_t *paths)
{
    PyObject *key = build_path_key(survey, reference);
    PyObject *known = key != NULL ? PyDict_GetItemWithError(numbers, key) : NULL;
    Py_ssize_t number = PyList_GET_SIZE(path_rows), steps;
    int result = -1;
    if (known != NULL) {
        reference->path_number = (uint32_t)PyLong_AsUnsignedLong(known);
        result = 0;
    } else if (PyErr_Occurred() == NULL && (size_t)number >= survey->path_limit) {
        reference->path_number = UINT32_MAX;
        result = 0;
    } else if (PyErr_Occurred() == NULL) {
        PyObject *path = memrt__path_up(paths, reference->from, &steps);
        uint32_t node = survey->members.rows[reference->row].node;
        PyObject *path_row =
            path != NULL ? Py_BuildValue("(ONn)", survey->graph->nodes[node].object, path, steps)
                         : NULL;
        PyObject *boxed = PyLong_FromSsize_t(number);
        reference->path_number = (uint32_t)number;
        if (path_row != NULL && boxed != NULL) {
            result =
                PyDict_SetItem(numbers, key, boxed) < 0 ? -1 : PyList_Append(path_rows, path_row);
        }
        Py_XDECREF(boxed);
        Py_XDECREF(path_row);
    }
    Py_XDECREF(key);
    return result;
}

/// Return a new list of (object, path, steps), or NULL.
static PyObject *number_paths(survey_t *survey)
{
    memrt_paths_t paths;
    PyObject *numbers = PyDict_New(), *path_rows = PyList_New(0);
    int result = memrt__paths_begin(&paths, survey->graph);
    result = numbers != NULL && path_rows != NULL ? result : -1;
    for (size_t i = 0; result == 0 && i < survey->reference_count; i++) {
        result =
            memrt__object_graph_step(survey->graph)
                ? -1
                : assign_path_number(survey, &survey->references[i], numbers, path_rows, &paths);
    }
    memrt__paths_end(&paths);
    Py_XDECREF(numbers);
    if (result < 0) {
        Py_CLEAR(path_rows);
    }
    return path_rows;
}

/* --- The result. --- */

static int append_row(PyObject *list, PyObject *row)
{
    int result = row != NULL ? PyList_Append(list, row) : -1;
    Py_XDECREF(row);
    return result;
}

static PyObject *build_subject_row(const survey_t *survey, const subject_t *subject)
{
    tally_t none = {0};
    const tally_t *tally = subject->group != 0 ? &survey->tallies[subject->group - 1] : &none;
    size_t known = tally->last + subject->named;
    size_t unexplained = subject->references > known ? subject->references - known : 0;
    return Py_BuildValue("(innnn)", subject->is_live, (Py_ssize_t)subject->named,
                         (Py_ssize_t)unexplained, (Py_ssize_t)tally->found,
                         (Py_ssize_t)subject->group - 1);
}

/// Return a new list of (is live, named references, unexplained references to the MemInfo,
/// references of the program, group or -1).
static PyObject *build_subject_rows(const survey_t *survey)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < survey->count; i++) {
        if (append_row(list, build_subject_row(survey, &survey->subjects[i])) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *build_reference_row(const survey_t *survey, const reference_t *reference)
{
    const memrt_member_t *row = &survey->members.rows[reference->row];
    memrt_extent_t extent;
    Py_ssize_t bytes = memrt__byte_ranges_of(survey->graph->nodes[row->node].object, &extent)
                           ? (Py_ssize_t)memrt__byte_ranges_bytes(&extent)
                           : -1;
    Py_ssize_t number =
        reference->path_number == UINT32_MAX ? -1 : (Py_ssize_t)reference->path_number;
    return Py_BuildValue("(nnin)", (Py_ssize_t)row->group, number, (int)row->link, bytes);
}

/// Return a new list of (group, path number or -1, link, bytes addressed or -1).
static PyObject *build_reference_rows(const survey_t *survey)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < survey->reference_count; i++) {
        if (append_row(list, build_reference_row(survey, &survey->references[i])) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *report_survey(memrt_graph_t *graph, void *context)
{
    survey_t *survey = context;
    PyObject *path_rows = NULL, *subjects = NULL, *references = NULL;
    survey->graph = graph;
    if (memrt__members_find(graph, 0, &survey->members) == 0 && label_members(survey) == 0 &&
        memrt__object_graph_edges(graph, count_reference, survey) == 0) {
        path_rows = number_paths(survey);
    }
    subjects = path_rows != NULL ? build_subject_rows(survey) : NULL;
    references = subjects != NULL ? build_reference_rows(survey) : NULL;
    memrt__members_end(&survey->members);
    PyMem_RawFree(survey->tallies);
    PyMem_RawFree(survey->references);
    survey->tallies = NULL;
    survey->references = NULL;
    survey->reference_count = survey->capacity = 0;
    if (references == NULL) {
        Py_XDECREF(path_rows);
        Py_XDECREF(subjects);
        return NULL;
    }
    return Py_BuildValue("(NNN)", subjects, references, path_rows);
}

static PyObject *survey_holders(PyObject *module, PyObject *args)
{
    survey_t survey = {0};
    PyObject *addresses, *result = NULL;
    Py_ssize_t path_limit;
    int frames;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!ni:survey", &PyList_Type, &addresses, &path_limit, &frames)) {
        return NULL;
    }
    survey.path_limit = path_limit > 0 ? (size_t)path_limit : 0;
    if (read_subjects(addresses, &survey) == 0) {
        result = memrt__object_graph_query(NULL, frames, report_survey, &survey);
    }
    PyMem_RawFree(survey.subjects);
    return result;
}

PyMethodDef memrt__survey_methods[] = {
    {"survey", survey_holders, METH_VARARGS,
     "survey(addresses, most_paths, frames) -> tuple of lists\n\n"
     "Find the holders of the buffers at some addresses. Return three lists. For each buffer:\n"
     "(is live, named references, unexplained references, references of Python objects, group\n"
     "or -1). For some references of each group: (group, path number or -1, link, bytes\n"
     "addressed or -1). For each path number: (object, path, steps), as in find_holders(); paths\n"
     "that differ only in indexes and keys have one number. The innermost `frames` frames are not\n"
     "searched."},
    {NULL, NULL, 0, NULL},
};
